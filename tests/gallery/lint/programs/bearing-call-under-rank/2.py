import torch
import torch.distributed as dist


def mean_over_ranks(x):
    dist.all_reduce(x)
    return x / dist.get_world_size()


def evaluate(model, loader):
    correct = torch.zeros(1)
    for x, y in loader:
        correct += (model(x).argmax(-1) == y).sum()
    return mean_over_ranks(correct)


def train(model, loader, rank):
    for epoch in range(3):
        for x, y in loader:
            model(x).sum().backward()
        if rank == 0:
            print(evaluate(model, loader))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(None, [], dist.get_rank())
