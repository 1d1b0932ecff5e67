import argparse
import json
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from decoder import LMLoss, ModelStage


def train(rank, cfg, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    world = cfg["stages"]
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    module = ModelStage(cfg, rank)
    loss_fn = LMLoss(module, cfg)
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, cfg["microbatches"], loss_fn=loss_fn)
    opt = torch.optim.AdamW(module.parameters(), lr=3e-4)
    n = cfg["microbatches"] * cfg["micro_batch_size"]
    last = time.time()
    for step in range(cfg["train_steps"]):
        loss_fn.use_mtp = step >= cfg["mtp_start_step"]
        ids = torch.randint(0, cfg["vocab_size"], (n, cfg["seq_len"] + 1),
                            generator=torch.Generator().manual_seed(step))
        x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        opt.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        elif rank == world - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        opt.step()
        if losses and step % 5 == 4:
            now = time.time()
            print(f"iteration {step + 1} lm loss {torch.stack(losses).mean().item():.3f} "
                  f"time per iteration {(now - last) / 5:.2f}s", flush=True)
            last = now
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    cfg = json.load(open(ap.parse_args().config))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(cfg, port), nprocs=cfg["stages"])
