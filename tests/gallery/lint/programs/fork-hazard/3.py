import torch
import torch.multiprocessing as mp

mp.set_start_method("fork", force=True)


def train(i):
    torch.ones(1).cuda()


if __name__ == "__main__":
    model = torch.nn.Linear(2, 2).cuda()
    p = mp.Process(target=train, args=(0,))
    p.start()
