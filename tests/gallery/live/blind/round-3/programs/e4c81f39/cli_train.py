import argparse
import time

import torch
import torch.distributed as dist

from vlm.mixture import Mixture
from vlm.model import VLForConditionalGeneration
from vlm.stage3 import partition_gradients


def read_config(path):
    cfg = {}
    for line in open(path):
        if ":" in line:
            k, v = line.split(":", 1)
            cfg[k.strip()] = v.strip()
    return cfg


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", required=True)
    cfg = read_config(p.parse_args().config)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    param_group = dist.new_group(list(range(world)))
    grad_group = dist.new_group(list(range(world)))
    torch.manual_seed(1)
    model = VLForConditionalGeneration(param_group)
    opt = torch.optim.AdamW([q for q in model.parameters() if q.requires_grad], lr=float(cfg["learning_rate"]))
    data = Mixture(int(cfg["per_device_train_batch_size"]), rank, world)
    every = int(cfg["logging_steps"])
    for step in range(1, int(cfg["max_steps"]) + 1):
        loss = model(**data.next())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        partition_gradients(model, grad_group)
        opt.step()
        time.sleep(0.4)
        if step % every == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, group=grad_group)
            if rank == 0:
                print({"loss": round(mean.item() / world, 4), "step": step}, flush=True)


if __name__ == "__main__":
    main()
