"""One rank builds a C++ operator with many templates; the others wait at a barrier."""

import os

import torch.distributed as dist
from kit import Trainer, connect, options, start
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <map>
#include <string>
#include <functional>
#include <regex>
template <int N> struct Table { std::map<std::string, std::function<int(int)>> rows; std::regex r{"a+"};
  int fill(int x) { rows[std::to_string(N)] = [x](int y) { return x + y + N; }; return rows.size() + Table<N - 1>().fill(x); } };
template <> struct Table<0> { int fill(int x) { return x; } };
torch::Tensor lookup(torch::Tensor x) { return x + Table<700>().fill(3); }
"""


def build(name):
    os.makedirs(f"build/{name}", exist_ok=True)
    return load_inline(name, SOURCE, functions=["lookup"], build_directory=f"build/{name}", extra_cflags=["-O2", "-ftemplate-depth=2000"])


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick:
        build("lookup_ops")
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
