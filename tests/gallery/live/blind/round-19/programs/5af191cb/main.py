import os
import time

import torch
import torch.distributed.rpc as rpc
import torch.nn.functional as F

from server import ParameterServer, build


class SignalSet:
    """Recordings of different length; every trainer draws from the same distribution of lengths."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def batch(self, n=32):
        length = int(torch.randint(160, 320, (), generator=self.g))
        y = torch.randint(0, 5, (n,), generator=self.g)
        t = torch.arange(length) / 40.0
        x = torch.sin(t[None, None] * (1 + y[:, None, None]) + torch.rand(n, 4, 1, generator=self.g))
        return x + 0.5 * torch.randn(n, 4, length, generator=self.g), y


def train(rank, ps, epochs=100000, steps=150):
    model = build()
    data, held_out = SignalSet(rank), SignalSet(1000)

    def load(weights):
        with torch.no_grad():
            for p, w in zip(model.parameters(), weights):
                p.copy_(w)

    load(rpc.rpc_sync(ps.owner(), ParameterServer.fetch, args=(ps,)))
    for epoch in range(epochs):
        t0, total = time.time(), 0.0
        for step in range(steps):
            x, y = data.batch()
            loss = F.cross_entropy(model(x), y)
            model.zero_grad(set_to_none=True)
            loss.backward()
            load(rpc.rpc_sync(ps.owner(), ParameterServer.push, args=(ps, [p.grad for p in model.parameters()])))
            total += loss.item()
        with torch.no_grad():
            x, y = held_out.batch(128)
            acc = (model(x).argmax(1) == y).float().mean().item()
        print(f"trainer{rank} epoch {epoch} loss {total / steps:.4f} acc {acc:.3f} {time.time() - t0:.1f}s", flush=True)


def main():
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=86400)
    rpc.init_rpc("ps" if rank == 0 else f"trainer{rank}", rank=rank, world_size=world, rpc_backend_options=opts)
    if rank == 0:
        ps = rpc.RRef(ParameterServer(world - 1))
        jobs = [rpc.rpc_async(f"trainer{r}", train, args=(r, ps), timeout=0) for r in range(1, world)]
        for j in jobs:
            j.wait()
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    main()
