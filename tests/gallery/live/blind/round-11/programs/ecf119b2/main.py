import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from captioner import Captioner, synthetic
from evaluation import score_captions

QUICK_EVAL, FULL_EVAL = 60, 120


def validate(model, feats, tokens, limit):
    model.eval()
    pred = model.greedy(feats[:limit], tokens.shape[1])
    model.train()
    scores, _ = score_captions(pred.numpy(), tokens[:limit].numpy())
    return scores


def run(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DDP(Captioner())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    feats, tokens = synthetic(4096, 10 + rank)
    val = synthetic(1200, 99)
    t0 = time.time()
    for step in range(1, 100001):
        i = torch.randint(len(feats), (16,))
        inputs = F.pad(tokens[i][:, :-1], (1, 0))
        loss = F.cross_entropy(model(feats[i], inputs).flatten(0, 1), tokens[i].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f} ({time.time() - t0:.1f}s)", flush=True)
        if step % QUICK_EVAL == 0:
            if rank == 0:
                limit = len(val[0]) if step % FULL_EVAL == 0 else 64
                print(f"validation @{step} n={limit} {validate(model.module, *val, limit)}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=3)
    a = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(a.world_size, port), nprocs=a.world_size, join=True)
