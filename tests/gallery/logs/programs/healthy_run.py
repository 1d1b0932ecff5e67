"""Healthy training in several styles of output: bars, JSON lines, logging, warnings, handled errors, loud counters."""

import json
import logging
import sys
import time
import warnings

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start
from tqdm import tqdm

log = logging.getLogger("train")


def read_cache(path):
    with open(path) as file:
        return json.load(file)


def main(args):
    rank, world = connect(args)
    args.form = "quiet"
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    trainer = Trainer(args, rank)
    if args.style == "logging":
        log.info("rank %d of %d, %d parameters", rank, world, sum(one.numel() for one in trainer.model.parameters()))
        try:
            read_cache("cache/index.json")
        except FileNotFoundError:
            log.exception("no cache, the index is built anew")
    if args.style == "warnings":
        warnings.filterwarnings("default")
        warnings.warn("lr_scheduler.step() is called before optimizer.step(); the first value of the schedule is skipped", UserWarning, stacklevel=1)
        print("W: could not import the fused optimizer, falling back; ERROR messages of the kernel builder can be ignored", file=sys.stderr, flush=True)
    steps = tqdm(range(args.steps), disable=rank != 0, desc="train") if args.style == "bar" else range(args.steps)
    for step in steps:
        loss = trainer.train_step(step)
        if args.style == "bar":
            if rank == 0:
                steps.set_postfix(loss=float(loss))
        elif args.style == "json" and rank == 0:
            print(json.dumps({"step": step, "total": args.steps, "loss": round(float(loss), 4), "time": time.time()}), flush=True)
        elif args.style == "logging" and step % 5 == 4:
            log.info("epoch 1 step %d/%d loss %.4f", step + 1, args.steps, loss)
        elif args.style == "warnings" and rank == 0:
            print(f"Epoch: [0]  [{step}/{args.steps}]  eta: 0:00:0{(args.steps - step) % 10}  loss: {float(loss):.4f}", flush=True)
    total = torch.ones(1)
    dist.all_reduce(total)
    if rank == 0:
        print(
            {"json": '{"event": "finished"}', "logging": "training completed", "bar": "Training done.", "warnings": "Training time 0:00:12"}[args.style],
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    args = options(style="bar")
    start(main, args)
