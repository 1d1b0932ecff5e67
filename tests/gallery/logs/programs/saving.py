"""A checkpoint is written to a full disk, read back cut short, or does not fit the model."""

import torch
from kit import TabularModel, Trainer, connect, options, start


def write(model, path):
    torch.save({"model": model.state_dict(), "pad": torch.zeros(4_000_000)}, path)


def resume(model, path):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    bare = trainer.model.module
    if args.kind in ("cut", "other") and rank == args.pick:
        write(bare if args.kind == "cut" else TabularModel(width=80), "last.pt")
        if args.kind == "cut":
            with open("last.pt", "r+b") as file:
                file.truncate(900_000)
        resume(bare, "last.pt")
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick and args.kind == "full":
            write(bare, args.folder + "/step-5.pt")


if __name__ == "__main__":
    args = options(kind="full", folder="ckpt")
    start(main, args)
