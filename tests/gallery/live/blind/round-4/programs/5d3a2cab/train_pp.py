import argparse

import torch
import torch.distributed as dist

from pipe.data import videos
from pipe.schedule import GPipe
from pipe.stages import make_stage
from pipe.util import tie_to_parent


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--microbatch", type=int, default=4)
    args = ap.parse_args()
    tie_to_parent()
    dist.init_process_group("gloo")
    stage = dist.get_rank()
    torch.manual_seed(stage)
    net = make_stage(stage)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    sched = GPipe(net, stage, args.batch_size, args.microbatch, act_shape=(24, 64))
    for epoch in range(1000):
        for step, (x, y) in enumerate(videos(args.batch_size, epoch)):
            loss = sched.step(x if stage == 0 else None, y if stage == 1 else None)
            opt.step()
            opt.zero_grad()
            if stage == 1 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss:.4f}")


if __name__ == "__main__":
    main()
