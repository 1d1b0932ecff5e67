"""What was to be looked at: the plan of the case."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Plan(Fact):
    """`form` is none (no script), launch (we start the ranks) or command (the user's launcher does). `nproc` is what was asked for."""

    command: str = ""
    nproc: int = 0
    world_size: int = 0
    backend: str = ""
    device: str = ""
    form: str = "none"
    script: str = ""
    argv: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    interpreter_path: str = ""
    python_version: str = ""
    torch_version: str = ""
    cuda_version: str = ""
    interpreter_reason: str = ""
    host: str = ""
    cwd: str = ""
    gpus_requested: int | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    looked_s: float | None = None
    tool_version: str = ""


@dataclass(frozen=True)
class Script(Fact):
    """What the user's script says of itself as text. `syntax_error` is empty where it parses."""

    path: str = ""
    imports: tuple[str, ...] = ()
    syntax_error: str = ""


@dataclass(frozen=True)
class Interrupted(Fact):
    """Gathering was stopped by the user during `phase`."""

    phase: str = ""
