"""datasets: the main process prepares a data set while an earlier program still holds the lock of its cache."""

import json
import os

import torch.distributed as dist
from kit import Trainer, connect, options, start


def prepare(folder):
    import datasets

    if not os.path.exists("rows.json"):
        with open("rows.json", "w") as rows:
            rows.writelines(json.dumps({"text": f"line {number}"}) + "\n" for number in range(200))
    return datasets.load_dataset("json", data_files="rows.json", cache_dir=folder, split="train")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick:
        prepare("hf-cache")
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
