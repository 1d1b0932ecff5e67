import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

from click_data import IGNORE, ClickStream
from gossip_state import GossipState, mix

WORLD = 4
WARMUP = 40


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train_step(model, opt, batch):
    x, y = batch
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y, ignore_index=IGNORE)
    if not torch.isfinite(loss):
        return None
    loss.backward()
    opt.step()
    return loss.item()


def worker(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=WORLD, timeout=timedelta(minutes=30))
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    stream = ClickStream(rank)
    state = GossipState(rank, WORLD)
    seen = skipped = 0
    for step in range(6000):
        batch = stream.batch()
        while step < WARMUP and (batch[1] == IGNORE).all():
            batch = stream.batch()
        peer, tag = state.advance()
        loss = train_step(model, opt, batch)
        time.sleep(0.12)
        if loss is None:
            skipped += 1
            continue
        seen += 1
        mix(model, rank, peer, tag)
        if step % 20 == 0:
            print(f"rank {rank} step {step} loss {loss:.3f} seen {seen} skipped {skipped}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(free_port(),), nprocs=WORLD, join=True)
