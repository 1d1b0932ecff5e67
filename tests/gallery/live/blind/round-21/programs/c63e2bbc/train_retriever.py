import datetime
import tempfile
import time

import torch
import torch.nn as nn
from accelerate import Accelerator, InitProcessGroupKwargs, debug_launcher

from negative_cache import NegativeCache, exclusive
from pair_data import PairDataset, open_batches

ROWS, DIM = 1024, 32
MINE_EVERY = 60


def train(cache_dir):
    torch.set_num_threads(1)
    kwargs = InitProcessGroupKwargs(backend="gloo", timeout=datetime.timedelta(hours=1))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs])
    rank, world_size = accelerator.process_index, accelerator.num_processes
    g = torch.Generator().manual_seed(0)
    queries = torch.randn(ROWS, DIM, generator=g)
    passages = queries + 0.3 * torch.randn(ROWS, DIM, generator=g)

    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, DIM))
    encoder, optimizer = accelerator.prepare(encoder, torch.optim.AdamW(encoder.parameters(), lr=1e-3))

    cache = NegativeCache(cache_dir)
    negatives = torch.randint(0, ROWS, (ROWS, 4), generator=g)
    batch, batches = open_batches(PairDataset(queries, passages, negatives), rank, world_size)
    for step in range(1, 20001):
        q, pos, neg = (encoder(t) for t in batch)
        margin = (q * neg).sum(-1) - (q * pos).sum(-1)
        loss = nn.functional.softplus(margin).mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        time.sleep(0.15)
        if step % 20 == 0:
            accelerator.print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % MINE_EVERY == 0:
            with accelerator.main_process_first(), exclusive(cache.lock_path):
                negatives = cache.load_or_mine(step // MINE_EVERY, queries, passages)
                batch, batches = open_batches(PairDataset(queries, passages, negatives), rank, world_size)
        else:
            batch = next(batches)


if __name__ == "__main__":
    debug_launcher(train, args=(tempfile.mkdtemp(prefix="negatives_"),), num_processes=2)
