import argparse
import os
import signal
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from model import Net, shard


def local(t):
    return t.to_local() if isinstance(t, DTensor) else t


def reduce_grads(model, group):
    grads = [local(p.grad) for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for g, r in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(r.view_as(g))


class Saver(threading.Thread):
    """Writes snapshots of the local shards in the background."""

    def __init__(self, rank):
        super().__init__(daemon=True)
        self.path = os.path.join(tempfile.gettempdir(), f"tp-{os.getppid()}-{rank}.pt")
        self.lock, self.todo, self.ready = threading.Lock(), None, threading.Event()

    def submit(self, state):
        with self.lock:
            self.todo = state
        self.ready.set()

    def run(self):
        while True:
            self.ready.wait()
            self.ready.clear()
            with self.lock:
                state, self.todo = self.todo, None
            if state is not None:
                torch.save(state, self.path + ".tmp")
                os.replace(self.path + ".tmp", self.path)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tp", type=int, default=2)
    ap.add_argument("--steps", type=int, default=1000000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    dp = mesh.get_group("dp")
    torch.manual_seed(0)
    model = shard(Net(), mesh["tp"])
    opt = torch.optim.SGD(model.parameters(), lr=0.05, foreach=False)
    gen = torch.Generator().manual_seed(mesh.get_local_rank("dp"))
    w = torch.randn(64, 10, generator=torch.Generator().manual_seed(1))
    saver = Saver(rank)
    saver.start()
    leave = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: leave.set())
    if rank == 0:
        print(f"training begins on {mesh}", flush=True)

    t0 = time.time()
    for step in range(args.steps):
        n = int(torch.randint(24, 41, (), generator=gen))
        x = torch.randn(n, 64, generator=gen)
        loss = F.cross_entropy(model(x), (x @ w).argmax(1))
        opt.zero_grad()
        loss.backward()
        reduce_grads(model, dp)
        opt.step()
        if step % 20 == 0:
            flag = torch.tensor(int(leave.is_set()))
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            if flag.item():
                break
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        if step % 100 == 99:
            saver.submit({k: local(v).clone() for k, v in model.state_dict().items()})
            with torch.no_grad():
                x = torch.randn(512, 64, generator=torch.Generator().manual_seed(5))
                acc = (model(x).argmax(1) == (x @ w).argmax(1)).float().mean()
            if rank == 0:
                print(f"step {step} eval accuracy {acc.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
