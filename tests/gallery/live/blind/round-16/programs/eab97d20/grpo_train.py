import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from client import get_batch, wait_ready
from policy import TinyLM, token_logps

BETA, CLIP, STEPS = 0.04, 0.2, 5000


def grpo_loss(model, batch):
    tokens, plen = batch["tokens"], batch["plen"]
    adv = (batch["rewards"] - batch["rewards"].mean()) / (batch["rewards"].std() + 1e-4)
    logps = token_logps(model, tokens)[:, plen - 1:]
    ref = batch["ref_logps"][:, plen - 1:]
    kl = torch.exp(ref - logps) - (ref - logps) - 1
    ratio = torch.exp(logps - logps.detach())
    per_token = torch.min(ratio * adv[:, None], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[:, None])
    return -(per_token - BETA * kl).mean()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
    wait_ready()
    for step in range(1, STEPS + 1):
        batch = get_batch(rank)
        while batch is None:
            if rank == 0:
                print("waiting for batch...", flush=True)
            time.sleep(1)
            batch = get_batch(rank)
        loss = grpo_loss(model, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            print("step %d loss %.5f reward %.3f" % (step, loss.item(), batch["rewards"].mean()), flush=True)
        if step % 200 == 0:
            dist.barrier()
            if rank == 0:
                os.makedirs("logs/ckpt", exist_ok=True)
                torch.save(model.module.state_dict(), "logs/ckpt/step_%d.pt" % step)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
