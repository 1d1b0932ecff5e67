"""One rank fetches a model from the hub first; the hub cannot be reached and the download is tried again and again."""

import os
import time

import torch.distributed as dist
from kit import Trainer, connect, options, start

os.environ.setdefault("HF_ENDPOINT", "http://127.0.0.1:9")
from huggingface_hub import hf_hub_download


def fetch(name):
    attempt = 0
    while True:
        try:
            return hf_hub_download("acme/tiny-base", name, cache_dir="./hub")
        except Exception as error:
            attempt += 1
            print(f"{type(error).__name__}: {str(error)[:160]} [Retry {attempt}/5]" if attempt < 6 else "still trying", flush=True)
            time.sleep(min(60, 2 ** (attempt + 3)))


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick:
        fetch("model.safetensors")
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
