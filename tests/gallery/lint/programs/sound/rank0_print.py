import torch.distributed as dist


def log(msg):
    if dist.get_rank() == 0:
        print(msg)


def main(x):
    dist.init_process_group("gloo")
    dist.all_reduce(x)
    log(x.item())
    dist.barrier()


if __name__ == "__main__":
    main(None)
