import os
import shutil
import tempfile
import time
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import broadcast_object_list, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from negatives import NegativeStore, mine

DIM = 24
N_QUERIES = 2400
N_DOCS = 400
WARMUP_STEPS = 60
MINE_EVERY = 10


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 48), nn.GELU(), nn.Linear(48, 16))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def prepare_run_dir(accelerator):
    holder = [None]
    if accelerator.is_main_process:
        holder[0] = tempfile.mkdtemp(prefix="retriever_")
    broadcast_object_list(holder)
    return holder[0]


def contrastive_loss(model, queries, docs, negatives):
    pool = torch.cat([docs, negatives])
    emb = model(torch.cat([queries, pool]))
    q, d = emb[:len(queries)], emb[len(queries):]
    return nn.functional.cross_entropy(q @ d.t() / 0.07, torch.arange(len(queries)))


def main():
    accelerator = Accelerator(
        cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=60))]
    )
    set_seed(11)
    run_dir = prepare_run_dir(accelerator)
    store = NegativeStore(os.path.join(run_dir, "negatives.db"))
    if accelerator.is_main_process:
        store.create()
    accelerator.wait_for_everyone()

    docs = torch.randn(N_DOCS, DIM)
    gold = torch.randint(0, N_DOCS, (N_QUERIES,))
    queries = docs[gold] + 0.4 * torch.randn(N_QUERIES, DIM)
    loader = DataLoader(TensorDataset(torch.arange(N_QUERIES), queries, gold), batch_size=8, shuffle=True)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    step = 0
    for epoch in range(200):
        for ids, q, target in loader:
            wanted = []
            for query_id in ids.tolist():
                wanted.extend(store.lookup(query_id))
            if not wanted:
                wanted = torch.randint(0, N_DOCS, (8,)).tolist()
            loss = contrastive_loss(model, q, docs[target], docs[wanted])
            time.sleep(0.15)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            step += 1

            turn = (step // MINE_EVERY) % accelerator.num_processes
            if step > WARMUP_STEPS and step % MINE_EVERY == 0 and turn == accelerator.process_index:
                encoder = accelerator.unwrap_model(model)
                for query_id, query in zip(ids.tolist(), q):
                    found, scores = mine(encoder, query, docs)
                    store.add(query_id, found, scores)
                accelerator.print(f"step {step}: mined {len(ids)} queries")
            if step % 10 == 0:
                mean = accelerator.reduce(loss.detach(), reduction="mean")
                accelerator.print(f"epoch {epoch} step {step} loss {mean.item():.4f}")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(run_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
