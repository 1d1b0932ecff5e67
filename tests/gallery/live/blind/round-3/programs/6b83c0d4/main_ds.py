import argparse
import gc
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from saving import save_sharded


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save_every", type=int, default=500)
    p.add_argument("--steps", type=int, default=100000)
    a = p.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = DDP(nn.Sequential(nn.Embedding(300, 64), nn.Linear(64, 300)))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    history = []
    for step in range(1, a.steps + 1):
        tok = torch.randint(0, 300, (8, 33))
        loss = nn.functional.cross_entropy(net(tok[:, :-1]).flatten(0, 1), tok[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append({"step": step, "loss": loss.item(), "self": history[-1:]})
        time.sleep(0.1)
        if step % 15 == 0:
            print(f"Epoch: 0, Step: {step}, Rank: {rank}, loss = {loss.item():.4f}", flush=True)
        if step % 50 == 0:
            gc.collect()
        if step % a.save_every == 0:
            save_sharded(step, net.module, opt, "output_dir")


if __name__ == "__main__":
    main()
