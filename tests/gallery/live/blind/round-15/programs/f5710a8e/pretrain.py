import argparse
import contextlib
import os
import shutil
import socket
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from batching import DocumentStream
from model import GPT


def lm_loss(model, ids):
    logits = model(ids)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class Heartbeat(threading.Thread):
    def __init__(self, path, period=10):
        super().__init__(daemon=True)
        self.path, self.period, self.step = path, period, 0

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(f"{time.time()} {self.step}\n")
            time.sleep(self.period)


@torch.no_grad()
def evaluate(model, rank, batches=12):
    gen = torch.Generator().manual_seed(77 + rank)
    total = torch.zeros(2)
    for _ in range(batches):
        ids = torch.randint(0, 256, (8, 64), generator=gen)
        ids[:, 1::2] = ids[:, 0::2]
        total += torch.tensor([lm_loss(model, ids).item(), 1.0])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def worker(rank, args, port, workdir):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(args.nproc))
    dist.init_process_group("gloo")
    saver_group = dist.new_group(backend="gloo")
    torch.manual_seed(0)
    net = GPT()
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream = DocumentStream(rank, args.nproc)
    beat = Heartbeat(os.path.join(workdir, f"beat_{rank}"))
    beat.start()

    start, saving = time.time(), None
    for step in range(1, args.steps + 1):
        beat.step = step
        micro = list(stream.micro_batches(step))
        for i, ids in enumerate(micro):
            last = i == len(micro) - 1
            with contextlib.nullcontext() if last else model.no_sync():
                loss = lm_loss(model, ids) / len(micro)
                loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if rank == 0 and step % 10 == 0:
            print(f"[{time.time() - start:6.1f}s] step {step} loss {loss.item() * len(micro):.4f}", flush=True)
        if step % args.eval_every == 0:
            value = evaluate(net, rank)
            if rank == 0:
                print(f"eval at {step}: {value:.4f}", flush=True)
        if step % args.save_every == 0:
            if saving is not None:
                saving.result()
            path = os.path.join(workdir, f"step_{step}")
            state = {"model": net.state_dict(), "step": step}
            saving = dcp.async_save(state, checkpoint_id=path, process_group=saver_group)
            old = os.path.join(workdir, f"step_{step - 2 * args.save_every}")
            if rank == 0:
                print(f"saving {path}", flush=True)
                shutil.rmtree(old, ignore_errors=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--eval-every", type=int, default=40)
    parser.add_argument("--save-every", type=int, default=60)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as workdir:
        mp.spawn(worker, (args, port, workdir), nprocs=args.nproc)


if __name__ == "__main__":
    main()
