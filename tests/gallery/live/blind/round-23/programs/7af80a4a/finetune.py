import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from runlog import make_log
from snapshots import EmaWeights

WORLD = 3


class Tagger(torch.nn.Module):
    def __init__(self, vocab=200, dim=32, tags=9):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, dim)
        self.rnn = torch.nn.GRU(dim, dim, batch_first=True)
        self.out = torch.nn.Linear(dim, tags)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def batches(rank):
    gen = torch.Generator().manual_seed(rank)
    while True:
        ids = torch.randint(200, (8, 12), generator=gen)
        yield ids, ids % 9


def run(rank, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=45))
    torch.manual_seed(0)
    model = DDP(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    ema = EmaWeights(model.module, dist.new_group())
    log = make_log("tagger", rank)
    loss_fn = torch.nn.CrossEntropyLoss()

    for step, (ids, tags) in enumerate(batches(rank), start=1):
        time.sleep(0.15)
        loss = loss_fn(model(ids).flatten(0, 1), tags.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        snapshot = ema.update(step, model.module)
        if snapshot is not None:
            log.artifact(snapshot)
            del snapshot
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            log.scalars(step, loss=mean.item() / WORLD)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(port,), nprocs=WORLD)


if __name__ == "__main__":
    main()
