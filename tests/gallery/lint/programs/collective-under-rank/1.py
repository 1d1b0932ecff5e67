import torch
import torch.distributed as dist


def log_loss(loss):
    if dist.get_rank() == 0:
        dist.all_reduce(loss)
        print("loss", loss.item() / dist.get_world_size())


def main():
    dist.init_process_group("gloo")
    for step in range(100):
        loss = torch.rand(1)
        log_loss(loss)


if __name__ == "__main__":
    main()
