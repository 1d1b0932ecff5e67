import argparse, os, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from preempt import Notice
from saver import Saver


def build(width):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


def fit(args):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    store = dist.PrefixStore("saver", dist.distributed_c10d._get_default_store())
    notice, saver = Notice(), Saver(args.out, rank, world, store)
    model = DDP(build(args.width))
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    step = 0
    while True:
        x = torch.randn(32, args.width)
        loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 20 == 0 and rank == 0:
            print(f"step={step} loss={loss.item():.4f}", flush=True)
            with open("progress", "w") as f:
                f.write(f"{step}\n")
        time.sleep(0.15)
        if notice.wanted:
            saver.requeue_point(model, step)
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--out", default="ckpt")
    p.add_argument("--width", type=int, default=32)
    fit(p.parse_args())
