import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

from net import Classifier

ROUND_STEPS = 20
HOLDOUT_PER_ROUND = 500


def score(weights, examples):
    cmd = [sys.executable, "score_holdout.py", "--weights", weights, "--examples", str(examples)]
    proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    code = proc.wait()
    output = proc.stdout.read()
    if code != 0:
        raise RuntimeError(f"scoring failed:\n{output}")
    return json.loads(output.strip().splitlines()[-1])


def evaluate(model, round_id, workdir, rank):
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if rank == 0:
        path = os.path.join(workdir, f"round_{round_id}.pt")
        torch.save(weights, path)
        result = score(path, HOLDOUT_PER_ROUND * round_id)
        print(f"round {round_id} accuracy {result['accuracy']:.3f} on {result['n']}", flush=True)
    dist.barrier()


def worker(rank, world, port, workdir):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(minutes=90))
    torch.manual_seed(3)
    model = Classifier()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    gen = torch.Generator().manual_seed(rank)

    for round_id in range(1, 200):
        for step in range(ROUND_STEPS):
            x = torch.randn(16, 32, generator=gen)
            y = (x.sum(-1) > 0).long()
            time.sleep(0.12)
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and step % 5 == 0:
                print(f"round {round_id} step {step} loss {loss.item():.4f}", flush=True)
        evaluate(model, round_id, workdir, rank)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="finetune_") as workdir:
        mp.spawn(worker, args=(3, free_port(), workdir), nprocs=3)
