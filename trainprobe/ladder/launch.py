"""Turns a cell into programs to start: which argv, which environment, and where each one writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainprobe.ladder.cells import Cell, filled
from trainprobe.ladder.knobs import UNCHANGED, Change
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.probes import built_in_folder
from trainprobe.system.child import ChildSpec
from trainprobe.targets import launch as target
from trainprobe.targets.launch import Part

LAUNCHER = "launcher"


@dataclass(frozen=True)
class Launch:
    """One cell, ready to start. Paths are in `folder`, the cell's own working folder, which is gone
    when the cell is over.

    `nproc` is the number of its ranks on this host, from rank `first` on. `events` and
    `error_files` are by rank (None for a probe of the host). `logs` is where torchrun puts each
    rank's output.
    """

    cell: str
    nproc: int
    folder: str
    specs: tuple[ChildSpec, ...]
    events: Mapping[int | None, str] = field(default_factory=dict)
    error_files: Mapping[int, str] = field(default_factory=dict)
    witness_dir: str = ""
    dumps: str = ""
    logs: str = ""
    command: bool = False
    switched_on: Mapping[str, str] = field(default_factory=dict)
    left_alone: tuple[str, ...] = ()
    first: int = 0


def probe(
    plan: Plan, rung: Rung, cell: Cell, folder: str, deadline_s: float, part: Part | None = None
) -> Launch:
    """The ranks of one probe on this host, or its single process."""
    spec, part = rung.spec, part or target.whole(cell.nproc)
    base = target.clean(plan.environ)
    variables = {
        "TRAINPROBE_NPROC": str(plan.nproc),
        "TRAINPROBE_RANKS": str(plan.nproc),
        **(
            {"TRAINPROBE_WORLD": str(plan.world), "TRAINPROBE_NODES": ",".join(plan.nodes)}
            if plan.nodes
            else {}
        ),
        "TRAINPROBE_IMPORTS": ",".join(plan.imports),
        "TRAINPROBE_LOCAL_IMPORTS": ",".join(plan.script.local) if plan.script else "",
        "TRAINPROBE_SCRIPT": plan.script.path if plan.script else "",
        "TRAINPROBE_DEVICE": plan.device,
        "TRAINPROBE_DEADLINE_S": f"{deadline_s:g}",
        "TRAINPROBE_DATASET": plan.dataset,
        "TRAINPROBE_COLLATE": plan.collate,
        "TRAINPROBE_MODEL": plan.model,
        "TRAINPROBE_SAMPLE": plan.sample,
        "TRAINPROBE_BENCH_STEPS": _number(plan.bench_steps),
        "TRAINPROBE_FUZZ": _number(plan.fuzz),
        "TRAINPROBE_SEED": _number(plan.seed),
        "TRAINPROBE_BATCH_SIZE": str(plan.batch_size or ""),
        "TRAINPROBE_ROWS": _listed(plan.rows),
        "TRAINPROBE_WORKERS": _listed(plan.workers),
        **{
            f"TRAINPROBE_PLANNED_{name.upper()}": str(number)
            for name, number in plan.planned.items()
        },
    }
    if deadline_s < 90 and "TRAINPROBE_IMPORT_TIMEOUT_S" not in base:
        variables["TRAINPROBE_IMPORT_TIMEOUT_S"] = str(
            max(1, int(deadline_s / 3))
        )  # so that import_memory can still say which import it was
    ranks: tuple[int | None, ...] = _ranks(part) if spec.scope == "ranks" else (None,)
    dumps = _made(folder, "dumps")
    readable = target.easier_to_read(base, dumps, "", "").env if spec.scope == "ranks" else {}
    specs, events = [], {}
    for rank in ranks:
        name = "probe" if rank is None else f"rank{rank}"
        events[rank] = os.path.join(folder, f"{name}.events.jsonl")
        env = {**base, **readable, **variables, "TRAINPROBE_EVENTS": events[rank]}
        if rank is not None:
            env.update(target.one_rank(rank, part, f"trainprobe-{spec.name}", base))
        out = os.path.join(folder, f"{name}.out")
        err = os.path.join(folder, f"{name}.err")
        specs.append(
            ChildSpec(
                name, (plan.interpreter.path, spec.program), env, plan.cwd, out, err, rank=rank
            )
        )
    return Launch(
        rung.name(cell), part.nproc, folder, tuple(specs), events, dumps=dumps, first=part.first
    )


def _ranks(part: Part) -> tuple[int, ...]:
    return tuple(range(part.first, part.first + part.nproc))


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _asked(plan: Plan, change: Change) -> dict[str, str]:
    """What the witness is asked beyond its usual events: before an ablation, what there is to
    change; in it, to change it.
    """
    return {
        **({"TRAINPROBE_ABLATE": "1"} if plan.ablate and plan.witness and not change.how else {}),
        **change.env,
    }


def script(
    plan: Plan,
    rung: Rung,
    cell: Cell,
    folder: str,
    change: Change = UNCHANGED,
    part: Part | None = None,
) -> Launch:
    """The user's own script, its ranks launched by us with torchrun's variables."""
    part = part or target.whole(cell.nproc)
    base = {**target.clean(plan.environ), **_asked(plan, change)}
    argv = filled(change.argv or plan.argv, cell, part)
    witness_dir, dumps = _made(folder, "witness"), _made(folder, "dumps")
    on = target.easier_to_read(base, dumps, _witness(plan), witness_dir)
    errors = {rank: os.path.join(folder, f"rank{rank}.error.json") for rank in _ranks(part)}
    specs = []
    for rank in _ranks(part):
        env = {
            **base,
            **on.env,
            **target.one_rank(rank, part, "trainprobe", base),
            "TORCHELASTIC_ERROR_FILE": errors[rank],
        }
        out, err = os.path.join(folder, f"rank{rank}.out"), os.path.join(folder, f"rank{rank}.err")
        specs.append(
            ChildSpec(
                f"rank{rank}", (plan.interpreter.path, *argv), env, plan.cwd, out, err, rank=rank
            )
        )
    return Launch(
        rung.name(cell),
        part.nproc,
        folder,
        tuple(specs),
        error_files=errors,
        witness_dir=witness_dir,
        dumps=dumps,
        switched_on=on.env,
        left_alone=on.left,
        first=part.first,
    )


def command(
    plan: Plan,
    rung: Rung,
    cell: Cell,
    folder: str,
    change: Change = UNCHANGED,
    part: Part | None = None,
) -> Launch:
    """The user's own command, `{ranks}` and its like replaced; its launcher makes the ranks of
    this host.
    """
    part = part or target.whole(cell.nproc)
    base = {**target.clean(plan.environ), **_asked(plan, change)}
    witness_dir, dumps, logs = (
        _made(folder, "witness"),
        _made(folder, "dumps"),
        _made(folder, "logs"),
    )
    on = target.easier_to_read(base, dumps, _witness(plan), witness_dir)
    of_torchrun = target.of_torchrun(base, logs)
    argv = filled(change.argv or plan.argv, cell, part)
    env = {**base, **on.env, **of_torchrun.env}
    out = os.path.join(folder, "launcher.out")
    return Launch(
        rung.name(cell),
        part.nproc,
        folder,
        (ChildSpec(LAUNCHER, argv, env, plan.cwd, out, out),),
        witness_dir=witness_dir,
        dumps=dumps,
        logs=logs if "PET_LOG_DIR" in of_torchrun.env else base.get("PET_LOG_DIR", ""),
        command=True,
        switched_on={**on.env, **of_torchrun.env},
        left_alone=(*on.left, *of_torchrun.left),
        first=part.first,
    )


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _witness(plan: Plan) -> str:
    if not plan.witness:
        return ""
    folder = os.path.join(built_in_folder(), "_witness")
    return folder if os.path.isfile(os.path.join(folder, "sitecustomize.py")) else ""


def _made(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    return path
