import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from evaluate import pass_at_k

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--eval-every", type=int, default=100)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(args.epochs):
        for _ in range(60):
            step += 1
            x = torch.randn(16, 32)
            loss = (model(x) - x.roll(1, -1)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            if rank == 0 and step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step % args.eval_every == 0:
                if rank == 0:
                    t0 = time.time()
                    score = pass_at_k(net)
                    torch.save(net.state_dict(), "last.pt")
                    print(f"pass@5 {score:.3f} in {time.time() - t0:.1f}s", flush=True)
                dist.barrier()


if __name__ == "__main__":
    main()
