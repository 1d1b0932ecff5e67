"""What the surroundings do: no CUDA in this build, limits, a module that is not there, a hub that does not answer, a name that does not resolve."""

import os
import resource

import torch
from kit import Trainer, connect, options, start


def to_accelerator(model):
    return model.cuda(int(os.environ["LOCAL_RANK"]))


def load_language_model(name):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(name)


def compile_extension():
    from torch.utils.cpp_extension import load_inline

    return load_inline("fastnorm", cpp_sources="torch::Tensor norm(torch::Tensor x) { return x.nrm(); }", functions=["norm"])


def helpers():
    import threading
    import time

    return [threading.Thread(target=time.sleep, args=(30,), daemon=True).start() for _ in range(3000)]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick or args.pick < 0:
        if args.kind == "cuda":
            to_accelerator(trainer.model)
        elif args.kind == "hub":
            load_language_model("lantern-lab/lantern-1b")
        elif args.kind == "build":
            compile_extension()
        elif args.kind == "threads":
            resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
            helpers()
        elif args.kind == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
            torch.zeros(3 * 2**30)
        elif args.kind == "flash":
            import flash_attn  # noqa: F401
        elif args.kind == "vocabulary":
            torch.nn.Embedding(100, 8)(torch.tensor([3, 100]))
        elif args.kind == "label":
            torch.nn.functional.cross_entropy(torch.randn(4, 10), torch.tensor([1, 2, 10, 3]))
        elif args.kind == "abort":
            os.abort()
        elif args.kind == "gather":
            import ctypes

            ctypes.string_at(8)
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    args = options(kind="cuda")
    start(main, args)
