import argparse, logging, time
import torch, torch.distributed as dist
from torch import nn
from staged import LoadingThread, quiet_threads
from reader import row_source

logging.basicConfig(format="%(levelname).1s %(asctime)s %(message)s", level=logging.INFO)


class TinyDLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Linear(13, 16)
        self.emb = nn.Embedding(8, 16)
        self.top = nn.Linear(32, 1)

    def forward(self, d, s):
        return self.top(torch.cat([self.bottom(d).relu(), self.emb(s)], 1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser(); ap.add_argument("--batch", type=int, default=32)
    args = ap.parse_args()
    quiet_threads()
    dist.init_process_group("gloo")
    r = dist.get_rank()
    net = nn.parallel.DistributedDataParallel(TinyDLRM())
    opt = torch.optim.Adagrad(net.parameters(), lr=0.02)
    loader = LoadingThread(row_source(r, args.batch))
    it, t = 0, time.time()
    while (b := loader.get_next_batch()) is not None:
        d, s, y = b
        loss = nn.functional.binary_cross_entropy_with_logits(net(d, s), y)
        opt.zero_grad(); loss.backward(); opt.step()
        it += 1
        if r == 0 and it % 25 == 0:
            logging.info("it %d  bce %.4f  %.1f it/s", it, loss.item(), 25 / (time.time() - t)); t = time.time()
        time.sleep(0.1)


if __name__ == "__main__":
    main()
