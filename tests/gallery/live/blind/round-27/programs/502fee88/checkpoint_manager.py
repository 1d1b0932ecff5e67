import json
import os
import time

import torch

WRITE_STAGGER_S = 1.5
DELETE_LATENCY_S = 0.05


def shard_path(folder, step, rank):
    return os.path.join(folder, f"optim_{step:06d}_rank{rank}.pt")


def prune(root, keep):
    """Object-store style deletion: one request per file."""
    for name in sorted(d for d in os.listdir(root) if d.startswith("step_"))[:-keep]:
        folder = os.path.join(root, name)
        for file in sorted(os.listdir(folder)):
            os.remove(os.path.join(folder, file))
            time.sleep(DELETE_LATENCY_S)
        os.rmdir(folder)


def write_model(folder, step, model_data, samples):
    os.makedirs(folder, exist_ok=True)
    torch.save(model_data, os.path.join(folder, f"model_{step:06d}.pt"))
    for k, text in enumerate(samples):
        with open(os.path.join(folder, f"sample_{k:03d}.txt"), "w") as f:
            f.write(text)


def save_checkpoint(root, step, model_data, optimizer_data, samples, meta, rank, world_size, keep=2):
    folder = os.path.join(root, f"step_{step:06d}")
    if rank == 0:
        prune(root, keep)
        write_model(folder, step, model_data, samples)
    time.sleep(WRITE_STAGGER_S * rank)
    torch.save(optimizer_data, shard_path(folder, step, rank))
    done = os.path.join(folder, "meta.json")
    if rank == 0:
        while not all(os.path.exists(shard_path(folder, step, r)) for r in range(world_size)):
            time.sleep(0.2)
        with open(done + ".tmp", "w") as f:
            json.dump(meta, f)
        os.replace(done + ".tmp", done)
    while not os.path.exists(done):
        time.sleep(0.2)
