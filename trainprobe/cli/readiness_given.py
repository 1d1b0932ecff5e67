"""What was typed behind `trainprobe ready`, checked for form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from trainprobe.checks import SLOTS
from trainprobe.cli.words_given import names, seconds, whole_number
from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.targets.host_names import host_names

Budget = Literal["quick", "standard", "deep"]


def budget_of(*, quick: bool, standard: bool, deep: bool) -> Budget:
    """Return the one budget that was asked for; raises UsageError for two."""
    asked: list[Budget] = []
    asked += ["quick"] if quick else []
    asked += ["standard"] if standard else []
    asked += ["deep"] if deep else []
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} are two budgets.", "Give one of them.")
    return asked[0] if asked else "quick"


def ready_request(  # noqa: PLR0913 - one parameter per option
    budget: Budget,
    slot: str | None,
    nodes: str | None,
    *,
    nproc: str | None,
    gpus: str | None,
    paths: Sequence[str] | None,
    script: str | None,
    timeout: str | None,
    case: str | None,
    slurm: bool,
    python: str | None,
) -> ReadyRequest:
    """Return the request; raises UsageError for a word that cannot be meant."""
    where = slot or os.environ.get("TRAINPROBE_SLOT") or "step"
    if where not in SLOTS:
        raise UsageError(f"--slot knows {', '.join(SLOTS)}, not {where[:20]!r}.")
    folders = names(paths or ())
    relative = [folder for folder in folders if not os.path.isabs(folder)]
    if relative:
        raise UsageError(f"--paths {relative[0][:60]} is not a full path.", "On another node it would mean another folder; begin it with /.")
    apart = [folder for folder in folders if ":" in folder or "\n" in folder]
    if apart:
        raise UsageError(f"--paths {apart[0][:60]!r} cannot be told to a node: a colon stands between two folders there.", "Name the folder above it.")
    return ReadyRequest(
        budget=budget,
        slot=where,
        nodes=(host_names("--nodes", nodes) if nodes is not None else ()),
        nproc=whole_number("--nproc", nproc),
        gpus=whole_number("--gpus", gpus),
        paths=folders,
        script=os.path.abspath(script) if script else "",
        interpreter=python,
        slurm=slurm,
        timeout_s=seconds("--timeout", timeout),
        case=case,
        argv=("trainprobe", "ready", *((f"--{budget}",) if budget != "quick" else ()), *(("--nodes", nodes) if nodes else ())),
    )


def may_drain(named: str) -> None:
    """Raise UsageError where `named` are no nodes, or this user may not drain them: before anything is looked at."""
    from trainprobe.ready.drain import refuse_drain
    from trainprobe.site import read_site

    host_names("--drain", named)
    refuse_drain(read_site(), os.getuid())
