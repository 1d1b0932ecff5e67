"""Torch with a backend for collectives, made ready to be used by a rank."""

from __future__ import annotations

import os
import socket
from typing import Any, Tuple

import _emit


def torch_with(backend: str, local_rank: int) -> Tuple[Any, Any, str]:
    """(torch, torch.distributed, the rank's device); answers `cannot` without backend or GPU."""
    with _emit.phase("import:torch"):
        import torch
        import torch.distributed as dist
    if (
        not dist.is_available()
        or not {"gloo": dist.is_gloo_available, "nccl": dist.is_nccl_available}[backend]()
    ):
        _emit.result("cannot", f"This torch {torch.__version__} is built without {backend}.")
    if backend != "nccl":
        return torch, dist, "cpu"
    if local_rank >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        _emit.result("cannot", f"Local rank {local_rank} has no GPU: torch sees {count}.")
    torch.cuda.set_device(f"cuda:{local_rank}")
    return torch, dist, f"cuda:{local_rank}"


def meet_alone(world_size: int) -> None:
    """Let a process that was started by hand, without a launcher, meet itself."""
    if world_size == 1 and "MASTER_PORT" not in os.environ:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
