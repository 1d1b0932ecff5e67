"""What will be climbed: the rungs, the cells of each, and one sentence for each rung that is
left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainprobe.collect.look_results import LookResult
from trainprobe.errors import UsageError
from trainprobe.ladder.cells import Cell, grid
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.thresholds import Thresholds
from trainprobe.model.probes import ProbeSpec
from trainprobe.nodes.transports import Way
from trainprobe.targets.interpreter import Interpreter
from trainprobe.targets.script import Script

Form = Literal["none", "launch", "command"]
LINT = "lint"
"""What --skip leaves out beside rungs: the look at the script's source."""


@dataclass(frozen=True)
class Ask:
    """What decides about rungs: how many ranks on what, and what the user chose. `gpus` is how many
    GPUs this machine has.

    With `nodes`, the number of hosts that the ranks go over, `nproc` and `gpus` are those of each.
    """

    nproc: int
    gpus: int
    gpus_requested: int | None
    no_gpu_because: str
    form: Form
    interpreter: Interpreter
    imports: tuple[str, ...] = ("torch",)
    sizes_of_command: Literal["all", "one"] = "all"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    dataset: str = ""
    model: str = ""
    ranks: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    nodes: int = 0

    @property
    def world(self) -> int:
        return self.nproc * max(1, self.nodes)


@dataclass(frozen=True)
class Rung:
    """A rung with its sizes, or with the reason why it is left out. `unmet` is the reason as a word
    for programs.

    `sizes` are numbers of ranks. `rows` are amounts of data that the user's command is given, empty
    where that is not ours to set.
    """

    spec: ProbeSpec
    sizes: tuple[int, ...] = ()
    unmet: str = ""
    because: str = ""
    rows: tuple[int, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        return grid(self.sizes, self.rows)

    def name(self, cell: Cell) -> str:
        return cell.name(self.spec.name)


@dataclass(frozen=True)
class Plan:
    """Everything that `climb` needs to know; made before anything is started.

    `nodes` are the hosts that the ranks go over, in the order of the ranks, and `way` how they are
    reached; none for this machine alone.
    `nproc` is the number of ranks on each host.
    """

    nproc: int
    gpus: int
    gpus_requested: int | None
    device: Literal["cpu", "cuda"]
    form: Form
    argv: tuple[str, ...]
    cwd: str
    interpreter: Interpreter
    script: Script | None = None
    imports: tuple[str, ...] = ()
    rungs: tuple[Rung, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    timeout_s: float | None = None
    deadlines_s: Mapping[str, float] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)
    environ: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gpus_seen: LookResult | None = None
    witness: bool = True
    lint: bool = True
    ranks: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    ablate: bool = False
    knobs: tuple[tuple[str, str], ...] = ()
    resume: str | None = None
    dataset: str = ""
    collate: str = ""
    batch_size: int | None = None
    workers: tuple[int, ...] = ()
    model: str = ""
    sample: str = ""
    bench_steps: int | None = None
    fuzz: int | None = None
    seed: int | None = None
    planned: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    probe_dirs: tuple[str, ...] = ()
    config: str = ""
    way: Way | None = field(default=None, compare=False, metadata={"json": False})

    @property
    def world(self) -> int:
        """The number of all ranks."""
        return self.nproc * max(1, len(self.nodes))

    @property
    def backend(self) -> str:
        return "nccl" if self.device == "cuda" else "gloo"


def rungs_of(specs: Sequence[ProbeSpec], ask: Ask) -> tuple[Rung, ...]:
    """Decide about every rung. Raises UsageError when --only or --skip names a rung that does
    not exist.
    """
    known = {spec.name for spec in specs}
    for option, names in (("--only", ask.only), ("--skip", ask.skip)):
        for name in names:
            if name not in known and not (option == "--skip" and name == LINT):
                near = difflib.get_close_matches(name, sorted(known), n=1)
                do = (
                    f"Did you mean {near[0]}?"
                    if near
                    else f"There are: {', '.join(spec.name for spec in specs)}."
                )
                raise UsageError(f"{option} names {name}, which is not a rung.", do)
    return tuple(_rung(spec, ask) for spec in specs)


def _rung(spec: ProbeSpec, ask: Ask) -> Rung:
    if ask.only and spec.name not in ask.only:
        return Rung(spec, unmet="asked", because="--only leaves it out")
    if spec.name in ask.skip:
        return Rung(spec, unmet="asked", because="--skip leaves it out")
    for need in (
        "script",
        "dataset",
        "model",
        "gpu",
        "ranks>=2",
        "imports",
        "torch",
        "nccl",
        "gloo",
    ):  # what can never apply here comes before what is only missing
        if need in spec.needs:
            because = _unmet(need, ask)
            if because:
                return Rung(spec, unmet=need, because=because)
    every_size = spec.name == USER_SCRIPT
    found = sizes_of(spec, ask.nproc, every_size=every_size, nodes=ask.nodes)
    if every_size and ask.ranks:
        found = ask.ranks
    elif every_size and ask.sizes_of_command == "one":
        found = (ask.world,)
    if "gpu" in spec.needs and spec.scope == "ranks" and not ask.nodes:
        found = tuple(size for size in found if size <= ask.gpus) or (min(ask.gpus, ask.nproc),)
    return Rung(spec, found, rows=ask.rows if every_size else ())


def _unmet(need: str, ask: Ask) -> str:
    if need == "script":
        return "" if ask.form != "none" else "no script or command was given; give it after --"
    if need in ("dataset", "model"):
        return (
            ""
            if getattr(ask, need)
            else f"no {need} was given; give it as --{need} pkg.module:factory"
        )
    if need == "imports":
        return "" if ask.imports else ask.interpreter.reason or "nothing is to be imported"
    if need == "torch":
        return ask.interpreter.reason
    if need == "gpu":
        return "" if ask.gpus > 0 else ask.no_gpu_because
    if need == "nccl":
        if ask.interpreter.nccl:
            return ""
        return (
            f"the torch of {ask.interpreter.path} is built without NCCL"
            if ask.interpreter.torch
            else ask.interpreter.reason
        )
    if need == "gloo":
        return (
            ""
            if ask.interpreter.gloo
            else ask.interpreter.reason
            or f"the torch of {ask.interpreter.path} is built without gloo"
        )
    return "" if ask.world >= 2 else "it needs at least two ranks, but one was asked for"


def sizes_of(spec: ProbeSpec, nproc: int, *, every_size: bool, nodes: int = 0) -> tuple[int, ...]:
    """Return the sizes for a world of `nproc` ranks, the full one last; over `nodes` hosts with
    `nproc` ranks on each, the sizes are those of whole hosts.

    `every_size` gives 1, 2, 4 … and N (the user's script); otherwise a rung that climbs runs on 1
    and on N ranks.
    """
    if spec.scope == "host":
        return (1,)
    least = 2 if "ranks>=2" in spec.needs else 1
    if nodes:
        counts = _up_to(nodes, every_size=True) if "ranks" in spec.climbs else (nodes,)
        return tuple(count * nproc for count in counts if count * nproc >= least)
    if "ranks" not in spec.climbs:
        return (nproc,) if nproc >= least else ()
    sizes = _up_to(nproc, every_size=every_size)
    return tuple(size for size in sizes if least <= size <= nproc)


def _up_to(most: int, *, every_size: bool) -> tuple[int, ...]:
    """1, 2, 4 … and `most`, or 1 and `most` alone."""
    sizes = {1, most}
    power = 2
    while every_size and power < most:
        sizes.add(power)
        power *= 2
    return tuple(sorted(sizes))
