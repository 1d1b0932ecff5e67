import argparse
import logging
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from callbacks import EvaluateCallback, GlobalStateCallback, TrainState

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
logger = logging.getLogger("train")


def build_model():
    return nn.Sequential(
        nn.Linear(64, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 8)
    )


def worker(rank, args, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.nprocs)
    metrics_group = dist.new_group(backend="gloo")
    torch.manual_seed(0)
    model = DDP(build_model())
    optim = torch.optim.AdamW(model.parameters(), lr=5e-4)
    global_state = GlobalStateCallback(rank)
    evaluate = EvaluateCallback(args.eval_every, 10, metrics_group)
    state = TrainState()
    if args.resume:
        weights = os.path.join(args.resume, "model.pt")
        if os.path.exists(weights):
            model.module.load_state_dict(torch.load(weights, map_location="cpu"))
        state = global_state.load(args.resume)
        if rank == 0:
            logger.info("resumed from %s at step %d", args.resume, state.global_step)

    gen = torch.Generator().manual_seed(1234 + rank)
    mix = torch.randn(64, 8, generator=torch.Generator().manual_seed(5))

    def sample():
        x = torch.randn(64, 64, generator=gen)
        return x, torch.tanh(x @ mix)

    start, first = time.time(), state.global_step
    while state.global_step < args.max_steps:
        x, y = sample()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optim.step()
        optim.zero_grad()
        state.global_step += 1
        if rank == 0 and state.global_step % 20 == 0:
            rate = (state.global_step - first) / (time.time() - start)
            logger.info("step %d loss %.4f %.1f it/s", state.global_step, loss.item(), rate)
        valid = evaluate.on_step_end(state, model, sample)
        if valid is not None and rank == 0:
            logger.info("step %d valid %.4f best %.4f", state.global_step, valid, state.best_loss)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nprocs", type=int, default=2)
    parser.add_argument("--resume", default=None)
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--eval-every", type=int, default=100)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.nprocs)


if __name__ == "__main__":
    main()
