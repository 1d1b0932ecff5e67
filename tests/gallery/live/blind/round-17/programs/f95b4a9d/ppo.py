import logging
import os
import tempfile
import threading
import time
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from buffer import RolloutBuffer

warnings.filterwarnings("ignore", ".*view tensor.*")
log = logging.getLogger("ppo")
VOCAB = 48


class Policy(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.core = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(3))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        h = self.embed(tokens)
        h = h.cumsum(1) / torch.arange(1, tokens.shape[1] + 1).view(1, -1, 1) + h
        for block in self.core:
            h = h + block(h)
        return self.head(h)


class Heartbeat(threading.Thread):
    def __init__(self, path):
        super().__init__(name="heartbeat", daemon=True)
        self.path = path

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(str(time.time()))
            time.sleep(15)


def full(t):
    return t.full_tensor() if isinstance(t, DTensor) else t


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(asctime)s %(message)s")
    run_dir = tempfile.mkdtemp(prefix="ppo-")
    Heartbeat(os.path.join(run_dir, f"alive-{rank}")).start()

    torch.manual_seed(0)
    model = Policy()
    for block in model.core:
        fully_shard(block)
    fully_shard(model)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    buffer = RolloutBuffer(rank, VOCAB)
    held_out = torch.randint(0, VOCAB, (240, 24), generator=torch.Generator().manual_seed(99 + rank))

    tic = time.time()
    for step in range(1, 100001):
        batch = buffer.next()
        tokens = torch.tensor(batch["tokens"])
        reward = (tokens % 3 == 0).float().mean(1)
        weight = torch.softmax(reward / 0.1, dim=0)
        for _ in range(2):
            logits = model(tokens[:, :-1])
            logp = -F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(len(tokens), -1)
            loss = -(weight[:, None] * logp).sum(0).mean() - 0.1 * logp.mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            optim.zero_grad()
        if step % 20 == 0:
            stats = torch.tensor([loss.item(), reward.mean().item()])
            dist.all_reduce(stats)
            log.info("step %d loss %.4f reward %.3f version %d %.0f ms/step", step, *(stats / world).tolist(), batch["version"], 1e3 * (time.time() - tic) / step)
        if step % 25 == 0:
            bias = full(model.head.bias.detach()).tolist()
            buffer.push_weights(step // 25, bias)
            dist.barrier()
        if step % 100 == 0:
            with torch.no_grad():
                total = torch.zeros(1)
                for chunk in held_out.split(24):
                    total += F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
            dist.all_reduce(total)
            log.info("step %d held-out nll %.4f", step, total.item() / world / 10)
        if step % 200 == 0:
            state = {k: full(v).clone() for k, v in model.state_dict().items()}
            torch.save({k: v for i, (k, v) in enumerate(state.items()) if i % world == rank}, os.path.join(run_dir, f"policy-{rank}.pt"))
            dist.barrier()
            log.info("step %d saved", step)

    buffer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
