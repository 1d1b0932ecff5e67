import argparse
import os
import socket

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn.functional as F

import server
from net import RankNet


def clicks(seed, bs=512):
    g = torch.Generator().manual_seed(seed)
    while True:
        dense = torch.randn(bs, 12, generator=g)
        sparse = torch.randint(0, 400, (bs, 8), generator=g)
        y = ((dense[:, 0] + (sparse[:, 0] % 2)) > 0.5).float()
        yield dense, sparse, y


def load(model, params):
    with torch.no_grad():
        for p, v in zip(model.parameters(), params):
            p.copy_(v)


def train(rank, steps):
    name = rpc.get_worker_info().name
    model = RankNet()
    load(model, rpc.rpc_sync("ps", server.pull))
    for step, (dense, sparse, y) in zip(range(steps), clicks(rank)):
        for _ in range(4):
            loss = F.binary_cross_entropy_with_logits(model(dense, sparse), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        load(model, rpc.rpc_sync("ps", server.push, args=(name, list(grads))))
        if rank == 1 and step % 50 == 0:
            print(f"[{name}] step {step} loss {loss.item():.4f}", flush=True)


def worker(rank, args, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=args.threads, rpc_timeout=24 * 3600)
    name = "ps" if rank == 0 else f"trainer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=args.trainers + 1, rpc_backend_options=opts)
    if rank == 0:
        server.start(args.trainers, args.warmup, args.lr)
    rpc.api._barrier({"ps"} | {f"trainer{r}" for r in range(1, args.trainers + 1)})
    if rank > 0:
        train(rank, args.steps)
    rpc.shutdown()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--trainers", type=int, default=2)
    ap.add_argument("--threads", type=int, default=16)
    ap.add_argument("--warmup", type=int, default=600)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--lr", type=float, default=0.02)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.trainers + 1)
