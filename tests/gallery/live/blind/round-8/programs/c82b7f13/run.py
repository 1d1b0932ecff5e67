import argparse
import time

import torch
import torch.distributed.rpc as rpc

import server


def batch(rank, step, proj):
    g = torch.Generator().manual_seed(step * 7 + rank)
    x = torch.randn(64, 40, generator=g)
    return x, (x @ proj).argmax(1)


def load(model, weights):
    with torch.no_grad():
        for p, w in zip(model.parameters(), weights):
            p.copy_(w)


def train(rank, steps):
    proj = torch.randn(40, 10, generator=torch.Generator().manual_seed(3))
    model = server.build()
    version, weights = rpc.rpc_sync("ps", server.pull)
    load(model, weights)
    t0 = time.time()
    for step in range(steps):
        x, y = batch(rank, step, proj)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        version, weights = rpc.rpc_sync("ps", server.push, args=(rank, list(grads)))
        load(model, weights)
        if step % 100 == 0:
            print(f"[trainer {rank}] step {step} version {version} loss {loss.item():.4f} "
                  f"{step / (time.time() - t0 + 1e-6):.1f} it/s", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rank", type=int, required=True)
    ap.add_argument("--world", type=int, required=True)
    ap.add_argument("--async-pushes", type=int, default=2000)
    ap.add_argument("--steps", type=int, default=200000)
    args = ap.parse_args()
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=2, rpc_timeout=7200)
    name = "ps" if args.rank == 0 else f"trainer{args.rank}"
    if args.rank == 0:
        server.start_server(args.world - 1, args.async_pushes, 0.02)
    rpc.init_rpc(name, rank=args.rank, world_size=args.world, rpc_backend_options=options)
    if args.rank != 0:
        train(args.rank, args.steps)
    rpc.shutdown()


if __name__ == "__main__":
    main()
