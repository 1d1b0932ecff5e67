import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from decoders import SHAPE, DecoderPool
from records import shard


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(SHAPE[0], 96, 5, padding=2), nn.GELU(), nn.Conv1d(96, 96, 5, padding=2), nn.GELU())
        self.mix = nn.Linear(96, SHAPE[0])

    def forward(self, x):
        return self.mix(self.net(x).transpose(1, 2)).transpose(1, 2)


def train(rank, world, port, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(1)
    model = DDP(Encoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    pool = DecoderPool(args.decoders, log=lambda m: print(f"[rank{rank}] {m}", flush=True))
    for epoch in range(args.epochs):
        batch, step, t0 = [], 0, time.time()
        for key, spec in pool.stream(shard(rank)):
            batch.append(spec)
            if len(batch) < args.batch_size:
                continue
            x = torch.from_numpy(np.stack(batch)).log1p()
            batch = []
            mask = (torch.rand(x.shape[0], 1, x.shape[2]) > 0.3).float()
            loss = (model(x * mask) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
