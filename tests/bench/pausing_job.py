"""A training job that makes the pauses of `plan.json` (tests/bench/healthy_runs.py), and is healthy.

Its steps mostly sleep instead of computing, which costs the machine little. In its pauses, what
computes in a real job computes here too: whatever only sleeps is a wait by any measure.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

import trainprobe

plan = json.loads(Path("plan.json").read_text())
step = {"s": plan["step_s"]}
rank = int(os.environ.get("RANK", "0"))
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(6)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


class Rows(torch.utils.data.Dataset):  # type: ignore[misc] # torch is Any here
    """Rows that take a moment to decode."""

    def __init__(self, start_s: float = 0.0) -> None:
        self.start_s, self.open = start_s, False

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, place: int) -> torch.Tensor:
        if not self.open:
            time.sleep(self.start_s)
            self.open = True
        return torch.rand(64, 64) @ torch.rand(64)


def everybody() -> None:
    dist.all_reduce(torch.ones(4))


def checkpoint(length_s: float) -> None:
    """Rank 0 writes, to a disk that takes some megabytes a second."""
    if rank == 0:
        ends, block = time.monotonic() + length_s, os.urandom(1 << 19)
        with open("checkpoint.tmp", "wb") as file:
            while time.monotonic() < ends:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
                time.sleep(0.15)
                if file.tell() > 64 << 20:
                    file.seek(0)
        os.replace("checkpoint.tmp", "checkpoint.pt")
    everybody()


def rank0_evaluation(length_s: float) -> None:
    if rank == 0:
        evaluate(length_s)
    everybody()


def evaluation(length_s: float) -> None:
    evaluate(length_s * (1 + 0.1 * rank))
    everybody()


def evaluate(length_s: float) -> None:
    ends = time.monotonic() + length_s
    rows, correct, seen, place = Rows(), 0, 0, 0
    model.eval()
    with torch.no_grad():
        while time.monotonic() < ends:
            batch = torch.stack([rows[place + one] for one in range(64)])
            for labels in range(40):
                output = model(batch)
                correct += int((output.argmax(-1) == labels).sum())
                seen += len(batch)
            place += 64
    model.train()


def compilation(length_s: float) -> None:
    """Each rank waits for a compiler that it has started."""
    code = (
        f"import time; ends = time.monotonic() + {length_s}\n"
        "while time.monotonic() < ends: sum(range(400000))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    everybody()


def preprocess_under_lock(length_s: float) -> None:
    """One preprocesses under a lock; the others wait for the lock, and find that it is done."""
    with open("data.lock", "w") as lock:
        if rank != 0:
            time.sleep(0.3)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if rank == 0:
            evaluate(length_s)
    everybody()


def download(length_s: float) -> None:
    """A slow server sends rank 0 a file."""
    if rank == 0:
        ours, theirs = socket.socketpair()

        def serve() -> None:
            ends = time.monotonic() + length_s
            while time.monotonic() < ends:
                theirs.sendall(b"x" * 60_000)
                time.sleep(0.4)
            theirs.close()

        threading.Thread(target=serve, daemon=True).start()
        with open("shard.bin", "wb") as file:
            while part := ours.recv(1 << 16):
                file.write(part)
    everybody()


def slow_batch(length_s: float) -> None:
    if rank == dist.get_world_size() - 1:
        Rows(length_s)[0]
    everybody()


def late_rank(length_s: float) -> None:
    if rank == 1:
        evaluate(length_s)
    everybody()


def new_loader_workers(length_s: float) -> None:
    """A new epoch: new workers, which take a while for their first row."""
    for place, _ in enumerate(torch.utils.data.DataLoader(Rows(length_s), 4, num_workers=2)):
        everybody()
        if place == 10:
            break


def steps_grow(_: float) -> None:
    step["s"] = step["s"] * 3 if step["s"] < 1.5 else plan["step_s"]


def main(place: int | None = None) -> None:
    global rank
    if place is None:
        dist.init_process_group("gloo")
    else:  # without a launcher of its own: torch is loaded once for all ranks
        rank, at = place, f"tcp://localhost:{plan['port']}"
        dist.init_process_group("gloo", init_method=at, rank=place, world_size=plan["ranks"])
    with open(f"pid.{rank}", "w") as file:
        file.write(str(os.getpid()))
    number, pauses = 0, [one for one in plan["pauses"] if one["kind"] in globals()]
    everybody()
    open("began", "w").close()
    began = time.monotonic()
    while True:
        now = torch.tensor([time.monotonic() - began])
        dist.broadcast(now, 0)
        if now > plan["seconds"]:
            break
        if pauses and now > pauses[0]["at_s"]:
            pause = pauses.pop(0)
            globals()[pause["kind"]](pause["length_s"])
        loss = model(torch.rand(8, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        time.sleep(step["s"])
        if plan["says"]:
            trainprobe.step(number)
        if number % 20 == 0 and rank == 0:
            print(f"step {number} loss {float(loss.detach()):.3f}", flush=True)
        number += 1
    dist.destroy_process_group()


if "RANK" in os.environ:
    main()
else:
    torch.multiprocessing.start_processes(main, nprocs=plan["ranks"], start_method="fork")
