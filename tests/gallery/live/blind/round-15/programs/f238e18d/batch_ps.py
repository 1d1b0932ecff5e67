import argparse
import os
import time

import torch
import torch.distributed.rpc as rpc
import torch.nn.functional as F

from server import BatchUpdateServer, build_model


def examples(gen, n=48):
    y = torch.randint(0, 6, (n,), generator=gen)
    t = torch.arange(96).view(1, 1, -1) * (0.05 + 0.04 * y.view(-1, 1, 1))
    x = torch.sin(t + torch.rand(n, 4, 1, generator=gen) * 6.28) + 0.5 * torch.randn(n, 4, 96, generator=gen)
    return x, y


def run_trainer(rref, name, steps, seed):
    torch.set_num_threads(1)
    model = build_model()
    gen, held_out = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(500)
    weights = rpc.rpc_sync(rref.owner(), BatchUpdateServer.fetch, args=(rref,))
    t0 = time.time()
    for step in range(1, steps + 1):
        with torch.no_grad():
            for p, w in zip(model.parameters(), weights):
                p.copy_(w)
        x, y = examples(gen)
        loss = F.cross_entropy(model(x), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        weights = rpc.rpc_sync(rref.owner(), BatchUpdateServer.update_and_fetch, args=(rref, list(grads)))
        if step % 100 == 0:
            with torch.no_grad():
                x, y = examples(held_out, 96)
                acc = (model(x).argmax(-1) == y).float().mean().item()
            print(f"{name} step {step} loss {loss.item():.4f} acc {acc:.3f} {(time.time() - t0) * 10:.1f} ms/step", flush=True)
            t0 = time.time()
    return step


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--round", type=int, default=1000)
    args = p.parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=7200)
    rpc.init_rpc("server" if rank == 0 else f"trainer{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    if rank == 0:
        begin, rounds = time.time(), 0
        rref = rpc.RRef(BatchUpdateServer(world - 1))
        while time.time() - begin < args.seconds:
            futs = [rpc.rpc_async(f"trainer{r}", run_trainer, args=(rref, f"trainer{r}", args.round, 31 * r + rounds))
                    for r in range(1, world)]
            torch.futures.wait_all(futs)
            rounds += 1
            print(f"round {rounds} over, {rref.local_value().updates} updates so far", flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
