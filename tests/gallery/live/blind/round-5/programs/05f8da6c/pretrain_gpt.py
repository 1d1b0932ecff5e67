import argparse, os, time
import torch, torch.nn as nn, torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from indexed import TrainSet, ValidSet, Readahead


def lm():
    return nn.Sequential(nn.Embedding(512, 32), nn.Linear(32, 512))


def loss_of(net, t):
    return nn.functional.cross_entropy(net(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


def evaluate(net, args):
    net.eval()
    dl = DataLoader(ValidSet(), batch_size=16, num_workers=args.valid_num_workers)
    with torch.no_grad():
        v = torch.stack([loss_of(net, t) for t in dl]).mean()
    dist.all_reduce(v)
    net.train()
    return v.item() / dist.get_world_size()


def pretrain(rank, args):
    dist.init_process_group("gloo", rank=rank, world_size=args.nproc)
    # second node of the pipeline sits far from the file server
    if rank == 1:
        Readahead(pass_time=0.8).start()
    torch.manual_seed(1)
    net = nn.parallel.DistributedDataParallel(lm())
    opt = torch.optim.Adam(net.parameters(), 3e-4)
    ds = TrainSet()
    it = 0
    for t in DataLoader(ds, batch_size=4, sampler=DistributedSampler(range(10000), shuffle=False)):
        loss = loss_of(net, t)
        opt.zero_grad(); loss.backward(); opt.step()
        it += 1
        if rank == 0 and it % 20 == 0:
            print(f" iteration {it:8d} | lm loss: {loss.item():.4E}", flush=True)
        if it % args.eval_interval == 0:
            v = evaluate(net.module, args)
            if rank == 0:
                print(f" validation loss at iteration {it} | {v:.4E}", flush=True)
        time.sleep(0.12)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--eval-interval", type=int, default=100)
    p.add_argument("--valid-num-workers", type=int, default=2)
    a = p.parse_args()
    pids = []
    for r in range(a.nproc):
        pid = os.fork()
        if pid == 0:
            pretrain(r, a)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
