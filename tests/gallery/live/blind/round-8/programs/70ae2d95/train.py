import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from ops import load_ops

NODES, DIM, CLASSES = 6000, 48, 8


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2 * DIM, 96)
        self.b = torch.nn.Linear(96, CLASSES)

    def forward(self, own, mean):
        return self.b(torch.relu(self.a(torch.cat([own, mean], 1))))


def accuracy(net, feats, nbr, labels, gather):
    net.eval()
    hit = 0
    with torch.no_grad():
        for _ in range(4):
            for part in torch.arange(NODES).split(50):
                mean = gather(feats, nbr[part])
                hit += (net(feats[part], mean).argmax(1) == labels[part]).sum().item()
    net.train()
    return hit / (4 * NODES)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gather = load_ops()
    g = torch.Generator().manual_seed(4)
    feats = torch.randn(NODES, DIM, generator=g)
    nbr = torch.randint(0, NODES, (NODES, 40), generator=g)
    labels = (feats @ torch.randn(DIM, CLASSES, generator=g)).argmax(1)
    torch.manual_seed(0)
    net = Sage()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    pick = torch.Generator().manual_seed(100 + rank)
    t0 = time.time()
    for step in range(1, 200001):
        seed = torch.randint(0, NODES, (1024,), generator=pick)
        loss = torch.nn.functional.cross_entropy(model(feats[seed], gather(feats, nbr[seed])), labels[seed])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.0f}s", flush=True)
        if step % 1000 == 0:
            if rank == 0:
                print(f"step {step} accuracy {accuracy(net, feats, nbr, labels, gather):.4f}", flush=True)
            dist.barrier()


if __name__ == "__main__":
    main()
