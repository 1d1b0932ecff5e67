import argparse, os, time
import torch, torch.distributed as dist
from vid.model import VideoDepth
from vid.norm import CrossNorm
from vid.clips import stream


def run(opts):
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    CrossNorm.group = dist.new_group()
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(VideoDepth(opts.channels), find_unused_parameters=True, broadcast_buffers=False)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    clip = 0
    for n, (frame, first) in enumerate(stream(dist.get_rank(), opts.clips)):
        clip += first
        pred = net(frame, first)
        loss = (pred - frame.abs()).abs().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        if n % 16 == 0:
            print(f"frame {n} clip {clip} l1 {loss.item():.4f}", flush=True)
        time.sleep(0.12)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--clips", type=int, default=10)
    ap.add_argument("--channels", type=int, default=8)
    run(ap.parse_args())
