import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from data import CharData
from saver import AsyncSaver

log = logging.getLogger("train")


class CharLM(nn.Module):
    def __init__(self, vocab, dim=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])


def average_gradients(model, world_size):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world_size
    offset = 0
    for p in model.parameters():
        p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
        offset += p.numel()


def shard_state(model, optim, rank, world_size):
    items = sorted(model.state_dict().items())
    return {
        "model": {name: t.clone() for i, (name, t) in enumerate(items) if i % world_size == rank},
        "optim": optim.state_dict() if rank == 0 else None,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=0, help="epochs between checkpoints, 0: only the last")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format=f"%(asctime)s rank{rank} %(message)s")

    data = CharData(rank, world_size)
    torch.manual_seed(0)
    model = CharLM(len(data.chars))
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    saver = AsyncSaver(rank, world_size)

    step = 0
    for epoch in range(1, args.epochs + 1):
        tic = time.time()
        for x, y in data.epoch():
            step += 1
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optim.zero_grad()
            loss.backward()
            average_gradients(model, world_size)
            optim.step()
            if step % 20 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        log.info("epoch %d finished in %.1fs", epoch, time.time() - tic)
        last = epoch == args.epochs
        if last or (args.save_every and epoch % args.save_every == 0):
            path = os.path.join(args.out, f"step-{step}")
            saver.save(path, step, shard_state(model, optim, rank, world_size))
            log.info("checkpoint %s handed to the saver", path)

    saver.close()
    dist.barrier()
    log.info("training finished after %d steps", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
