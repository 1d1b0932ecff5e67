import multiprocessing as mp
import os

os.environ["OMP_NUM_THREADS"] = str(mp.cpu_count())
import torch.distributed as dist  # noqa: E402


def main():
    dist.init_process_group("gloo")


main()
