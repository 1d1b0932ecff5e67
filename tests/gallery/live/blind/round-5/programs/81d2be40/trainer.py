import argparse, logging, os, time
import torch
from torch import nn
import torch.distributed as dist
from tables import ShardedTables

log = logging.getLogger("rec")


def batches(names, rows=500, bs=64):
    g = torch.Generator().manual_seed(1234)
    step = 0
    while True:
        k = 1 if step < 60 else len(names)     # curriculum: one field first, then all of them
        yield {n: torch.randint(0, rows, (bs,), generator=g) for n in names[:k]}, torch.rand(bs, 1, generator=g)
        step += 1


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tables", nargs="+")
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--refresh-every", type=int, default=20)
    a = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{os.environ['RANK']} %(message)s")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    tables = ShardedTables(a.tables, a.dim)
    tower = nn.Sequential(nn.Linear(a.dim, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adagrad(list(tables.parameters()) + list(tower.parameters()), lr=0.01)
    t0 = time.time()
    for i, (x, y) in enumerate(batches(a.tables)):
        loss = nn.functional.mse_loss(tower(tables.lookup(x)), y)
        opt.zero_grad(); loss.backward()
        for p in tower.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        opt.step()
        if (i + 1) % a.refresh_every == 0:
            n = tables.refresh()
            log.info("step %d loss %.4f refreshed %d tables (%.1fs)", i + 1, loss.item(), n, time.time() - t0)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
