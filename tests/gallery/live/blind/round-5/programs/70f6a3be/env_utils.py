import os


def describe():
    keys = ("SLURM_NNODES", "SLURM_PROCID", "WORLD_SIZE", "RANK", "LOCAL_RANK")
    return " ".join(f"{k}={os.environ.get(k)}" for k in keys)
