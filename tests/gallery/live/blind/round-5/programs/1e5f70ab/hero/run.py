import argparse, logging, time
import torch, torch.distributed as dist
from hero.cache import ShardCache, plan
from hero.gctool import ManualGC

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s", datefmt="%H:%M:%S")


class Expert(torch.nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.up, self.down = torch.nn.Linear(d, 2 * d), torch.nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(x)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--gc-every", type=int, default=50)
    ap.add_argument("--warmup", type=int, default=10)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = torch.nn.parallel.DistributedDataParallel(Expert())
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    cache, collector = ShardCache(), ManualGC(a.gc_every)
    step, mark = 0, time.time()
    while True:
        cache.add(plan(rank, step), step)
        x = torch.randn(32, 64)
        loss = (net(x) - x.roll(1, 1)).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        collector.tick(step)
        time.sleep(0.08)
        step += 1
        if step % 10 == 0 and rank == 0:
            now = time.time()
            logging.info("step %d loss %.4f throughput/iteration_time %.3f", step, loss.item(), (now - mark) / 10)
            mark = now


main()
