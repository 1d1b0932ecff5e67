import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

from metrics import Metrics
from tp_model import Decoder, apply_tp


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(args.tp))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (args.tp,), mesh_dim_names=("tp",))
    torch.manual_seed(args.seed)
    model = apply_tp(Decoder(), mesh["tp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, foreach=False)
    metrics = Metrics(rank, args.stats_every, args.stats_after)
    data = torch.Generator().manual_seed(args.seed)

    for step in range(1, args.steps + 1):
        start = torch.randint(400, (args.batch, 1), generator=data)
        tokens = (start + torch.arange(args.seq + 1) * 3) % 400
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            metrics.line(step, loss=round(loss.item(), 4))
        metrics.weight_stats(step, model)

    dist.barrier()
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--seq", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--stats-every", type=int, default=500)
    p.add_argument("--stats-after", type=int, default=500)
    args = p.parse_args()
    mp.spawn(worker, args=(args, free_port()), nprocs=args.tp)


if __name__ == "__main__":
    main()
