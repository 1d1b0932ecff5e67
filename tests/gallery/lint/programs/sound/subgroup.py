import torch.distributed as dist


def main(x):
    dist.init_process_group("gloo")
    group = dist.new_group([0, 1])
    if dist.get_rank() in (0, 1):
        dist.all_reduce(x, group=group)
    dist.barrier()


if __name__ == "__main__":
    main(None)
