import torch.distributed as dist
from limits import threads


def main():
    dist.init_process_group("gloo")
    threads()


main()
