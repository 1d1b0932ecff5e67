import argparse
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

import dataset_packs


class SpeakerNet(nn.Module):
    def __init__(self, dim=24, spk=40):
        super().__init__()
        self.tdnn = nn.Sequential(nn.Conv1d(dim, 32, 5), nn.ReLU(), nn.Conv1d(32, 32, 3, dilation=2), nn.ReLU())
        self.cls = nn.Linear(64, spk)

    def forward(self, x):
        h = self.tdnn(x)
        return self.cls(torch.cat([h.mean(-1), h.std(-1)], -1))


def main_worker(gpu, ngpu, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{args.port}", rank=gpu, world_size=ngpu)
    packs = dataset_packs.list_for_rank("packs", gpu)
    dist.barrier()
    net = DDP(SpeakerNet())
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for it in range(1, args.max_iter + 1):
        t0 = time.time()
        feats = torch.from_numpy(dataset_packs.read(packs[it % len(packs)]).astype("float32"))
        start = torch.randint(0, len(feats) - 200, (8,)).tolist()
        x = torch.stack([feats[s:s + 200].T for s in start])
        t1 = time.time()
        loss = nn.functional.cross_entropy(net(x), torch.randint(0, 40, (8,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 5 == 0:
            print(f"rank {gpu} it {it} loss {loss.item():.3f} {8 / (time.time() - t0):.2f} Hz "
                  f"(read {t1 - t0:.2f}s)", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, default=8888)
    p.add_argument("--ngpu", type=int, default=2)
    p.add_argument("--max_iter", type=int, default=100000)
    args = p.parse_args()
    mp.spawn(main_worker, nprocs=args.ngpu, args=(args.ngpu, args))
