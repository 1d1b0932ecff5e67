import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from outer_sync import OuterSync

VOCAB, DIM = 300, 32
SEGMENT_LIMIT = 4500
SHARD_GROWTH = {0: 14, 1: 40, 2: 11}


class Heartbeat:
    def __init__(self, rank):
        self.path = os.path.join(os.environ["RUN_DIR"], f"worker-{rank}.beat")

    def beat(self, phase):
        with open(self.path, "w") as f:
            f.write(f"{os.getpid()} {phase}")


class ShardLog:
    """Append-only token log of this island; compacted when it has grown too many segments."""

    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(rank)
        self.growth = SHARD_GROWTH[rank]
        self.segments = [torch.randint(0, VOCAB, (16,), generator=self.g) for _ in range(100)]

    def ingest(self):
        for _ in range(self.growth):
            self.segments.append(torch.randint(0, VOCAB, (16,), generator=self.g))
        if len(self.segments) > SEGMENT_LIMIT:
            self.compact()

    def compact(self):
        print(f"compacting {len(self.segments)} segments", flush=True)
        keep = []
        for i, seg in enumerate(self.segments):
            if i % 9 == 0:
                keep.append(seg.sort().values)
            time.sleep(0.004)
        self.segments = keep

    def batch(self, n):
        idx = torch.randint(0, len(self.segments), (n,), generator=self.g)
        return torch.stack([self.segments[i] for i in idx.tolist()])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--inner-steps", type=int, default=20)
    ap.add_argument("--rounds", type=int, default=5000)
    args = ap.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, rank == 0)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(VOCAB, DIM), nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, VOCAB))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sync = OuterSync(store, rank, world)
    heart, shard = Heartbeat(rank), ShardLog(rank)

    step = 0
    for rnd in range(args.rounds):
        for _ in range(args.inner_steps):
            tokens = shard.batch(8)
            loss = F.cross_entropy(model(tokens[:, :-1]).reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            step += 1
            shard.ingest()
            heart.beat("inner")
        waiting = time.time()
        heart.beat("sync")
        sync.average(list(model.parameters()))
        print(f"rank {rank} round {rnd} step {step} loss {loss.item():.4f} sync {time.time() - waiting:.2f}s", flush=True)


if __name__ == "__main__":
    main()
