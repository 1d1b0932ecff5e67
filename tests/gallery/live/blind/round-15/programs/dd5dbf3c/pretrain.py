import os
import time

import torch
import torch._dynamo
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from config import Config
from net import Transformer

cfg = Config()


def get_batch(gen):
    base = torch.randint(0, cfg.vocab, (cfg.batch, 1), generator=gen)
    seq = (base + 3 * torch.arange(cfg.context + 1)) % cfg.vocab
    return seq[:, :-1].contiguous(), seq[:, 1:].contiguous()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    master = rank == 0
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(100 + rank)

    model = DDP(Transformer(cfg), bucket_cap_mb=1)
    raw = model
    if cfg.compile:
        torch._dynamo.config.recompile_limit = cfg.recompile_limit
        torch._dynamo.config.accumulated_recompile_limit = cfg.recompile_limit
        if master:
            print("compiling the model ...", flush=True)
        model = torch.compile(model, backend=os.environ.get("COMPILE_BACKEND", "aot_eager"))
    opt = torch.optim.AdamW(raw.parameters(), lr=cfg.lr, weight_decay=0.1)

    for step in range(cfg.steps):
        x, y = get_batch(gen)
        raw.module.updates = max(0, step - cfg.skip_start)
        t0 = time.perf_counter()
        loss = model(x, y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        dt = time.perf_counter() - t0
        if master and step % cfg.log_every == 0:
            print(f"step {step} | loss {loss.item():.4f} | {dt * 1000:.0f} ms | "
                  f"{cfg.batch * cfg.context * dist.get_world_size() / dt:.0f} tok/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
