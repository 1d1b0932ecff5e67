"""Find out who we are, whatever started us."""
import os

RANK_KEYS = ("RANK", "LOCAL_RANK", "SLURM_LOCALID", "SLURM_PROCID")
WORLD_KEYS = ("WORLD_SIZE", "SLURM_NTASKS")


def first(keys, default):
    for key in keys:
        if os.environ.get(key):
            return int(os.environ[key])
    return default


def get_rank():
    return first(RANK_KEYS, 0)


def get_world_size():
    return first(WORLD_KEYS, 1)
