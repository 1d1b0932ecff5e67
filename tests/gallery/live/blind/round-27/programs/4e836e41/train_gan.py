import gc
import os
import pickle
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LATENT, DIM = 8, 12


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 48), nn.LeakyReLU(0.2), nn.Linear(48, n_out))


def real_batch(n, gen):
    angle = torch.rand(n, 1, generator=gen) * 6.283
    return torch.cos(angle + torch.arange(DIM).float()) + 0.05 * torch.randn(n, DIM, generator=gen)


class Heartbeat:
    """Re-arms a timer for itself; prints the age of the last step."""

    def __init__(self, interval):
        self.interval = interval
        self.step = 0
        self._arm()

    def _arm(self):
        self.timer = threading.Timer(self.interval, self._beat)
        self.timer.daemon = True
        self.timer.start()

    def _beat(self):
        print(f"[{time.strftime('%H:%M:%S')}] at step {self.step}", flush=True)
        self._arm()


class Scorer:
    def __init__(self, folder):
        gen = torch.Generator().manual_seed(77)
        real = real_batch(4000, gen)
        path = os.path.join(folder, "reference.pt")
        torch.save({"mean": real.mean(0), "std": real.std(0)}, path)
        self.proc = subprocess.Popen(
            [sys.executable, "score_worker.py", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def score(self, samples):
        blob = pickle.dumps(samples)
        self.proc.stdin.write(struct.pack("<I", len(blob)) + blob)
        self.proc.stdin.flush()
        return float(self.proc.stdout.readline())


def sample_all(ema, rank, world, total=4000, chunk=100):
    share = total // world + (600 if rank == 0 else -600)
    gen = torch.Generator().manual_seed(rank)
    parts = []
    with torch.no_grad():
        for _ in range(share // chunk):
            parts.append(ema(torch.randn(chunk, LATENT, generator=gen)))
            time.sleep(0.25)
    gathered = [None] * world
    dist.all_gather_object(gathered, torch.cat(parts))
    return torch.cat(gathered)


def run(rank, world, port, folder):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=timedelta(minutes=30)
    )
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(10 + rank)
    G, D = DDP(mlp(LATENT, DIM)), DDP(mlp(DIM, 1))
    ema = mlp(LATENT, DIM)
    ema.load_state_dict(G.module.state_dict())
    opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(D.parameters(), lr=5e-4, betas=(0.5, 0.99))
    scorer = Scorer(folder) if rank == 0 else None
    heartbeat = Heartbeat(15.0) if rank == 0 else None
    gc.disable()
    d_accuracy, saver = torch.tensor(0.5), None
    for step in range(1, 100_000):
        d_updates = 3 if d_accuracy.item() < 0.6 else 1
        for _ in range(d_updates):
            real = real_batch(32, gen)
            fake = G.module(torch.randn(32, LATENT, generator=gen)).detach()
            scores = D(torch.cat([real, fake]))
            loss_d = nn.functional.softplus(-scores[:32]).mean() + nn.functional.softplus(scores[32:]).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()
        d_accuracy = ((scores[:32] > 0).float().mean() + (scores[32:] < 0).float().mean()).detach() / 2
        dist.all_reduce(d_accuracy)
        d_accuracy /= world

        D.requires_grad_(False)
        loss_g = nn.functional.softplus(-D.module(G(torch.randn(32, LATENT, generator=gen)))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        D.requires_grad_(True)
        with torch.no_grad():
            for slow, fast in zip(ema.parameters(), G.module.parameters()):
                slow.lerp_(fast, 0.02)
        time.sleep(0.12)
        if heartbeat is not None:
            heartbeat.step = step

        if step % 50 == 0:
            gc.collect()
        if step % 60 == 0 and rank == 0:
            if saver is not None:
                saver.join()
            state = {k: v.clone() for k, v in ema.state_dict().items()}
            saver = threading.Thread(target=save_slowly, args=(state, os.path.join(folder, "ema.pt")))
            saver.start()
        if step % 200 == 0:
            samples = sample_all(ema, rank, world)
            if rank == 0:
                print(f"step {step} score {scorer.score(samples):.4f} d_acc {d_accuracy.item():.2f}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


def save_slowly(state, path):
    with open(path, "wb") as f:
        for name, value in state.items():
            pickle.dump((name, value.numpy()), f)
            time.sleep(1.0)


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free_port = s.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="gan_") as tmp:
        mp.spawn(run, args=(2, free_port, tmp), nprocs=2)
