import argparse
import socket
import time

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

import exchange


def make_task(seed, n):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 32, generator=gen)
    y = torch.sin(x[:, :8].sum(1)) + 0.1 * torch.randn(n, generator=gen)
    return x, y


def run(rank, world, rpc_port, pg_port, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{pg_port}", rank=rank, world_size=world)
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=args.rpc_threads, rpc_timeout=7200, init_method=f"tcp://127.0.0.1:{rpc_port}"
    )
    rpc.init_rpc(exchange.name(rank), rank=rank, world_size=world, rpc_backend_options=options)

    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(32, 192), nn.Tanh(), nn.Linear(192, 192), nn.Tanh(), nn.Linear(192, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.02 * (1 + rank), momentum=0.9)
    x, y = make_task(1, 6000)
    member = exchange.Member(rank, model, make_task(2, 4000))
    exchange.register(member)
    dist.barrier()

    order = torch.Generator().manual_seed(rank)
    stats = torch.zeros(2)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        idx = torch.randint(len(x), (256,), generator=order)
        with member.lock:
            loss = F.mse_loss(model(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if step % args.push_every == 0:
            # members take turns
            if (step // args.push_every) % world == rank:
                member.push((rank + 1) % world)
            dist.barrier()
        if step % args.select_every == 0:
            peers = [(rank + k) % world for k in range(1, world)]
            taken = torch.tensor(float(sum(member.push_all(peers))))
            dist.all_reduce(taken)
            if rank == 0:
                print(f"step {step} selection: {int(taken.item())} weights taken over", flush=True)
        if step % 20 == 0:
            stats[0], stats[1] = loss.detach(), 1.0
            dist.all_reduce(stats)
            if rank == 0:
                print(f"step {step} loss {stats[0].item() / stats[1].item():.4f} {time.time() - t0:.1f}s", flush=True)
    rpc.shutdown()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--members", type=int, default=3)
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--push-every", type=int, default=10)
    p.add_argument("--rpc-threads", type=int, default=2)
    p.add_argument("--select-every", type=int, default=120)
    args = p.parse_args()
    mp.spawn(run, args=(args.members, free_port(), free_port(), args), nprocs=args.members)
