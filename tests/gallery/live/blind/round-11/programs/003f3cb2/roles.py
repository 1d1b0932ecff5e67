import time

import torch
import torch.distributed.rpc as rpc
import torch.nn.functional as F

import params
from wide_deep import WideDeep

BUDGET = 1500


def stream(seed, n=24, bs=1024):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(n, generator=torch.Generator().manual_seed(0))
    while True:
        x = torch.randn(bs, n, generator=g)
        yield x, ((x * w).sum(1) > 0).float()


@torch.no_grad()
def evaluate(model, batches=200):
    hit = tot = 0
    for (x, y), _ in zip(stream(10**6), range(batches)):
        hit += ((model(x) > 0) == (y > 0.5)).sum().item()
        tot += len(y)
    return hit / tot


def serve(deadline):
    last = 0
    while time.time() < deadline:
        time.sleep(5)
        h = params.host()
        print(f"[host] version {h.version} (+{(h.version - last) / 5:.0f}/s)", flush=True)
        last = h.version


def learn(name, seed, deadline):
    while not rpc.rpc_sync("host", params.ready):
        time.sleep(0.2)
    model, step, t0 = WideDeep(), 0, time.time()
    for x, y in stream(seed):
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        fut = rpc.rpc_async("host", params.push, args=(list(torch.autograd.grad(loss, list(model.parameters()))),))
        version, values = fut.wait()
        with torch.no_grad():
            for p, v in zip(model.parameters(), values):
                p.copy_(v)
        step += 1
        if step % 400 == 0:
            print(f"[{name}] step {step} version {version} loss {loss.item():.4f} {step / (time.time() - t0):.1f}/s", flush=True)
        if step % 1500 == 0:
            print(f"[{name}] holdout {evaluate(model):.4f}", flush=True)
        if time.time() > deadline:
            break


def entry(rank, world):
    torch.set_num_threads(1)
    deadline = time.time() + BUDGET
    name = "host" if rank == 0 else f"learner{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=300))
    if rank == 0:
        params.create(0.02)
        serve(deadline)
    else:
        learn(name, rank, deadline)
    rpc.shutdown(timeout=600)
