"""A rank's number by environment, scheduler, arguments or start; better sources win."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from trainprobe.targets.process_table import ProcessRow, once
from trainprobe.targets.programs import PIPE_HANDLE, option, program_of, whole

# Where a number comes from, the most trusted last.
STRENGTH = {
    name: place
    for place, name in enumerate(
        (
            "",
            "only-process",
            "start-order",
            "gpu-order",
            "sockets",
            "siblings",
            "frame-locals",
            "arguments",
            "scheduler",
            "environment",
        )
    )
}
OF_ENVIRONMENT = (  # rank, local rank, world size, source
    ("RANK", "LOCAL_RANK", "WORLD_SIZE", "environment"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "environment"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "environment"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", "environment"),
    ("PMIX_RANK", "", "", "environment"),
)
NEXT_CHILD = 3
ADDRESS_OPTIONS = ("dist-url", "master-addr", "master-port", "init-method", "dist-init-method")
OF_SLURM = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "scheduler")


@dataclass(frozen=True)
class Number:
    """One source's word on a rank; None where it has none. `source` is that of `rank`."""

    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    source: str = ""
    world_source: str = ""


@dataclass(frozen=True)
class Shape:
    """The world by the launcher's command: processes a node, nodes, this node's number."""

    nproc: int | None = None
    nnodes: int | None = None
    node_rank: int | None = None
    total: int | None = None

    @property
    def world_size(self) -> int | None:
        if self.total is not None:
            return self.total
        return None if self.nproc is None or self.nnodes is None else self.nproc * self.nnodes

    def rank_of(self, local_rank: int) -> int | None:
        if self.nnodes == 1:
            return local_rank
        if self.node_rank is None or self.nproc is None:
            return None
        return self.node_rank * self.nproc + local_rank


def from_environment(environ: Mapping[str, str]) -> Number:
    """Read the variables of torchrun, MPI and SLURM, in this order.

    SLURM's count only for a task that srun started: a batch script itself carries SLURM_PROCID=0
    and the allocation's SLURM_NTASKS.
    """
    slurm = (
        (OF_SLURM,)
        if environ.get("SLURM_STEP_ID", environ.get("SLURM_STEPID", "")).isdecimal()
        else ()
    )
    for rank_name, local_name, world_name, source in (*OF_ENVIRONMENT, *slurm):
        rank = whole(environ.get(rank_name, ""))
        local = whole(environ.get(local_name, ""))
        world = whole(environ.get(world_name, ""))
        if rank is None and local is not None and world is not None and rank_name == "RANK":
            rank = _of_node(environ, local, world)
        if rank is not None:
            # what torch reads counts more than the number of tasks
            told = whole(environ.get("WORLD_SIZE", ""))
            size, size_source = (told, "environment") if told is not None else (world, source)
            return Number(rank, local, size, source, size_source if size is not None else "")
    return Number(
        local_rank=whole(environ.get("LOCAL_RANK", "")),
        world_size=whole(environ.get("WORLD_SIZE", "")),
        world_source="environment",
    )


def _of_node(environ: Mapping[str, str], local: int, world: int) -> int | None:
    """Lightning gives its children NODE_RANK and LOCAL_RANK and no RANK."""
    node = whole(environ.get("NODE_RANK", environ.get("GROUP_RANK", "0")))
    a_node = whole(environ.get("LOCAL_WORLD_SIZE", ""))
    if node == 0:
        return local
    return (
        node * a_node + local
        if node is not None and a_node is not None and node * a_node + local < world
        else None
    )


def from_arguments(arguments: Sequence[str], shape: Shape) -> Number:
    """Read `--rank`, `--local-rank` and `--world-size` of a script.

    `--rank` alone proves nothing, since adapters have a rank too: it counts beside a world size or
    an address.
    """
    world = whole(option(arguments, "world-size", "world", "ws", "dist-world-size", "num-procs"))
    rank = whole(option(arguments, "rank", "dist-rank", "global-rank"))
    local = whole(option(arguments, "local-rank"))
    if rank is not None and world is None and not option(arguments, *ADDRESS_OPTIONS):
        rank = None
    if rank is None and local is not None:
        rank = shape.rank_of(local)
    return Number(
        rank,
        local,
        world,
        "arguments" if rank is not None else "",
        "arguments" if world is not None else "",
    )


@once
def own_number(process: ProcessRow) -> Number:
    """What its own environment or else its own arguments say."""
    number = from_environment(process.environ)
    return (
        number
        if number.rank is not None
        else from_arguments(program_of(process.argv).rest, Shape())
    )


def shape_of(kind: str, argv: Sequence[str], environ: Mapping[str, str]) -> Shape:
    """Read a launcher's options; torchrun defaults to PET_X (elastic's argparse_util.py)."""
    arguments = argv[1:]
    if kind == "mpirun":
        return Shape(total=whole(option(arguments, "np", "n", "c")))
    if kind == "accelerate":
        machines = whole(option(arguments, "num-machines")) or 1
        total = whole(option(arguments, "num-processes"))
        a_node = total // machines if total is not None and total % machines == 0 else None
        return Shape(
            a_node, machines, whole(option(arguments, "machine-rank")) if machines > 1 else 0, total
        )
    if kind == "deepspeed":
        return _of_deepspeed(arguments)

    def asked(*names: str) -> str:
        return option(arguments, *names) or next(
            (
                environ[f"PET_{name.upper().replace('-', '_')}"]
                for name in names
                if f"PET_{name.upper().replace('-', '_')}" in environ
            ),
            "",
        )

    nproc = asked("nproc-per-node")
    nnodes = asked("nnodes") or "1"
    low, _, high = nnodes.partition(":")
    number = whole(low) if not high or high == low else None
    node = whole(asked("node-rank"))
    return Shape(whole(nproc) if nproc else 1, number, 0 if number == 1 else node)


def _of_deepspeed(arguments: Sequence[str]) -> Shape:
    """Read DeepSpeed's base64 of {"host": [gpu, …]}, or the runner's --num_gpus."""
    encoded = option(arguments, "world-info")
    try:
        world = json.loads(base64.urlsafe_b64decode(encoded)) if encoded else None
    except (binascii.Error, ValueError, RecursionError):
        world = None
    if isinstance(world, dict) and world and all(isinstance(each, list) for each in world.values()):
        node = whole(option(arguments, "node-rank")) if len(world) > 1 else 0
        sizes = [len(each) for each in world.values()]
        same = sizes[0] if len(set(sizes)) == 1 else None
        return Shape(same, len(world), node, sum(sizes))
    nodes = whole(option(arguments, "num-nodes")) or 1
    return Shape(
        whole(option(arguments, "num-gpus", "num-accelerators")), nodes, 0 if nodes == 1 else None
    )


def places(cmdlines: Sequence[str]) -> tuple[int, ...] | None:
    """Return the place of each spawned child among its siblings, given in order of their start;
    None where there may be a gap of unknown size.

    The parent keeps two descriptors open for each child, so that the handle in the child's command
    line grows by two or three from one child to the next (seen with Python 3.11: 6, 8, 11, 13): a
    step of four or five among such steps is a child that has ended.
    """
    handles = [
        int(match.group(1)) if match else -1
        for match in (PIPE_HANDLE.search(line) for line in cmdlines)
    ]
    steps = [after - before for before, after in zip(handles, handles[1:])]
    if (
        min(handles, default=-1) < 0
        or min(steps, default=0) <= 0
        or (len(steps) > 1 and min(steps) == max(steps))
    ):
        return tuple(
            range(len(cmdlines))
        )  # nothing to measure a gap by, or evenly more than two for each child
    if min(steps) > NEXT_CHILD or max(steps) > 2 * NEXT_CHILD - 1:
        return None
    return tuple(accumulate((1 if step <= NEXT_CHILD else 2 for step in steps), initial=0))


def settle(
    numbers: Sequence[Number], world_size: int | None, world_source: str
) -> tuple[Number, ...]:
    """Drop impossible numbers: of two equal ones the worse source's, and those beyond the world."""
    settled = list(numbers)
    for place, number in enumerate(settled):
        beyond = (
            number.rank is not None
            and world_size is not None
            and number.rank >= max(world_size, number.world_size or 0)
        )
        if beyond and STRENGTH.get(number.source, 0) <= STRENGTH.get(world_source, 0):
            settled[place] = replace(number, rank=None, source="")
    by_rank: dict[int, list[int]] = {}
    for place, number in enumerate(settled):
        if number.rank is not None:
            by_rank.setdefault(number.rank, []).append(place)
    for at in by_rank.values():
        best = max(STRENGTH.get(settled[place].source, 0) for place in at)
        first = [place for place in at if STRENGTH.get(settled[place].source, 0) == best]
        for place in at:
            if place not in first or len(first) > 1:
                settled[place] = replace(settled[place], rank=None, source="")
    return tuple(settled)


def by_elimination(numbers: Sequence[Number], world: Iterable[int]) -> tuple[Number, ...]:
    """Give the one rank without a number the one number that is left."""
    left = sorted(set(world) - {number.rank for number in numbers})
    without = [place for place, number in enumerate(numbers) if number.rank is None]
    if len(left) != 1 or len(without) != 1:
        return tuple(numbers)
    found = list(numbers)
    found[without[0]] = replace(found[without[0]], rank=left[0], source="start-order")
    return tuple(found)
