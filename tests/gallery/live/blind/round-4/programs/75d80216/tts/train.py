import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from . import checkpoint
from .preempt import PreemptionGuard

log = logging.getLogger("tts.train")


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(80, 96)
        self.rnn = nn.GRU(96, 160, batch_first=True)
        self.mel = nn.Linear(160, 40)

    def forward(self, x):
        return self.mel(self.rnn(self.emb(x))[0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out")
    args = ap.parse_args()
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s task{rank} %(name)s %(message)s")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    guard = PreemptionGuard()
    torch.manual_seed(0)
    model = DDP(Decoder())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, 90001):
        text = torch.randint(0, 80, (12, 60), generator=g)
        mel = torch.sin(text[..., None] * torch.arange(1, 41) * 0.01)
        loss = (model(text) - mel).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            log.info("step %d l1 %.4f", step, loss.item())
        if guard.requested:
            checkpoint.save(args.out, step, model.module, opt)
            log.info("checkpoint written at step %d, exiting", step)
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
