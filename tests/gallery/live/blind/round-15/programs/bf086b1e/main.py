import argparse
import socket

import torch
import torch.multiprocessing as mp

from model import ActorCritic
from test import evaluate
from train import train

parser = argparse.ArgumentParser(description="actor critic")
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--gamma", type=float, default=0.97)
parser.add_argument("--entropy-coef", type=float, default=0.01)
parser.add_argument("--value-loss-coef", type=float, default=0.5)
parser.add_argument("--max-grad-norm", type=float, default=10)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--num-processes", type=int, default=2)
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--num-steps", type=int, default=10)
parser.add_argument("--max-episodes", type=int, default=1000)

if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    shared_model = ActorCritic()
    shared_model.share_memory()
    print(f"initial score {evaluate(shared_model, args.seed + 1000):.3f}", flush=True)

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    ctx = mp.get_context("fork")
    processes = []
    for rank in range(args.num_processes):
        p = ctx.Process(target=train, args=(rank, args, shared_model, port))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    print(f"final score {evaluate(shared_model, args.seed + 1000):.3f}")
