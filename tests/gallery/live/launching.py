"""How a live run is started, and which pid somebody would type."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

from tests.conftest import processes_with
from tests.gallery.live.surroundings import HERE, Site

BIN = os.path.dirname(sys.executable)
LAUNCHERS = (
    "torchrun",
    "module",
    "accelerate",
    "spawn",
    "single",
    "two-nodes",
)  # what was started is the job's own launcher or process


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def command(site: Site, script: Path) -> list[str]:
    """The words that start the job."""
    run, port = site.run, str(site.port)
    own = [
        str(script.name)
    ]  # whom the run falls ill at and how stands in the environment: the words of a command are evidence
    count = ["--nproc-per-node", str(run.world), "--master-port", port]
    starts = {
        "torchrun": lambda: [f"{BIN}/torchrun", *count, *own],
        "module": lambda: [sys.executable, "-m", "torch.distributed.run", *count, *own],
        "two-nodes": lambda: [
            f"{BIN}/torchrun",
            *count,
            "--nnodes",
            "2",
            "--node-rank",
            "0",
            "--master-addr",
            "127.0.0.1",
            *own,
        ],
        "accelerate": lambda: [f"{BIN}/accelerate", "launch", *_accelerate(run.world, port), *own],
        "spawn": lambda: [
            sys.executable,
            *own,
            "--nproc",
            str(run.world),
            "--master",
            f"127.0.0.1:{port}",
        ],
        "single": lambda: [sys.executable, *own],
        "popen": lambda: [
            sys.executable,
            site.plant(HERE / "outside" / "starter.py").name,
            str(run.world),
            port,
            *own,
        ],
        "bare": lambda: _shell(own, port, dict.fromkeys(range(run.world), run.world)),
        "one-short": lambda: _shell(own, port, dict.fromkeys(range(run.world - 1), run.world)),
        "odd-world": lambda: _shell(
            own, port, {rank: run.world + (rank == run.pick) for rank in range(run.world)}
        ),
        "netns": lambda: _shell(own, port, dict.fromkeys(range(run.world), run.world), site.spaces),
    }
    return starts[run.launch]()


def _accelerate(world: int, port: str) -> list[str]:
    # accelerate 1.15 has no --multi_cpu, and its --cpu starts one process: only --multi_gpu starts
    # several, and asks for no GPU itself.
    several = ["--multi_gpu", "--num_processes", str(world), "--num_machines", "1"]
    return [
        *several,
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        port,
    ]


def _shell(
    own: list[str], port: str, worlds: dict[int, int], spaces: tuple[str, str] = ("", "")
) -> list[str]:
    lines = []
    for rank, world in worlds.items():
        space = spaces[rank * 2 // len(worlds)]
        entered = f"ip netns exec {space} " if space else ""
        names = (
            f"MASTER_ADDR={'10.77.0.1' if space else '127.0.0.1'} MASTER_PORT={port}"
            f" {'GLOO_SOCKET_IFNAME=eth0 ' if space else ''}"
        )
        lines.append(
            f"RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={world} {names}{entered}{sys.executable}"
            f" {' '.join(own)} &"
        )
    return ["sh", "-c", "\n".join([*lines, "wait"])]


def pid_to_type(site: Site, started: int) -> int:
    """The launcher where there is one; else, or for one seed in three, one of the ranks."""
    if site.run.launch in LAUNCHERS and (
        site.run.seed % 3 or site.run.launch in ("spawn", "single", "two-nodes")
    ):
        return started
    ranks = []
    for pid in sorted(processes_with(site.token)):
        with contextlib.suppress(OSError):
            words = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
            parent = int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
            state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
            if (
                any(word.startswith(b"RANK=") for word in words)
                and parent == started
                and state != "Z"
            ):
                ranks.append(pid)
    return ranks[site.run.seed % len(ranks)] if ranks else started
