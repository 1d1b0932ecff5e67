import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from corpus import write_stage
from model import TinyLM
from stream import stage_loader


def run_stage(model, stage, cfg, root, rank, world):
    loader = stage_loader(root, stage, cfg, rank, world)
    opt = torch.optim.AdamW(model.parameters(), lr=stage["lr"])
    t0 = time.time()
    for step, block in enumerate(loader, 1):
        x, y = block[:, :-1], block[:, 1:]
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"[{stage['name']}] step {step} loss {loss.item():.3f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
        if step == stage["steps"]:
            break


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default="mix.json")
    args = ap.parse_args()
    cfg = json.load(open(args.config))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(cfg["seed"])
    root = os.path.join(os.environ["RUN_DIR"], "corpus")
    if rank == 0:
        for i, stage in enumerate(cfg["stages"]):
            write_stage(root, stage, cfg["seed"] + i)
    dist.barrier()
    model = DDP(TinyLM(cfg["vocab"], cfg["dim"], cfg["layers"], cfg["seq_len"]))
    for stage in cfg["stages"]:
        if rank == 0:
            print(f"=> stage {stage['name']}: {stage['files']} files", flush=True)
        run_stage(model, stage, cfg, root, rank, world)
        dist.barrier()
        if rank == 0:
            torch.save(model.module.state_dict(), os.path.join(os.environ["RUN_DIR"], f"{stage['name']}.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
