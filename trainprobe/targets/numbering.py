"""The numbers of a job's ranks: by what each has, the world's size, and the order of start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainprobe.targets.ended_ranks import numbered_between
from trainprobe.targets.numbers import (
    STRENGTH,
    Number,
    Shape,
    by_elimination,
    from_arguments,
    from_environment,
    places,
    settle,
    shape_of,
)
from trainprobe.targets.process_table import ProcessRow
from trainprobe.targets.programs import launcher_kind, option, program_of, whole
from trainprobe.targets.rank_search import Team

ELASTIC = frozenset({"torchrun", "accelerate", "deepspeed"})
WORLD_CAP = 200_000  # no job has more ranks; the absent ones are listed one by one


def numbered(
    team: Team,
    environs: Sequence[Mapping[str, str]],
    shape: Shape,
    by_siblings: Mapping[int, Number],
) -> tuple[list[Number], int | None, str]:
    """Return a number for each rank, the world's size, and that one's source."""
    numbers = [_number(team, rank, environ, shape) for rank, environ in zip(team.ranks, environs)]
    numbers = [
        _or_by_siblings(number, by_siblings.get(rank.pid))
        for rank, number in zip(team.ranks, numbers)
    ]
    world, source = _world(team, numbers, shape)
    if not within(world):
        world, source = None, ""
    numbers = list(
        settle(_by_store(team, _in_order_of_start(team, numbers, shape, world)), world, source)
    )
    numbers = numbered_between(team.ranks, numbers, world)
    if world is not None and shape.nnodes in (1, None) and len(numbers) == world:
        numbers = list(by_elimination(numbers, range(world)))
    return numbers, world, source


def within(world: int | None) -> bool:
    """Whether a world can have that size."""
    return world is not None and 0 < world <= WORLD_CAP


def launched_shape(team: Team) -> Shape:
    """What the launcher's command says; of several launchers only what all say."""
    if team.root is None or team.kind in ("spawn", "ray", "slurm"):
        return Shape()
    return shape_of(launcher_kind(team.root.argv) or team.kind, team.root.argv, team.root.environ)


def _number(team: Team, process: ProcessRow, environ: Mapping[str, str], shape: Shape) -> Number:
    """The best of environment and arguments, without what a spawned rank inherited."""
    number = from_environment(environ)
    arguments = from_arguments(program_of(process.argv).rest, shape)
    inherited = (
        team.kind == "spawn"
        and team.root is not None
        and process is not team.root
        and _same_number(number, from_environment(team.root.environ))
    )
    if inherited:
        return Number(world_size=None)
    if number.rank is not None:
        return number
    local = number.local_rank if number.local_rank is not None else arguments.local_rank
    return replace(
        arguments,
        local_rank=local,
        world_size=number.world_size or arguments.world_size,
        world_source="environment" if number.world_size else arguments.world_source,
    )


def _or_by_siblings(number: Number, by_siblings: Number | None) -> Number:
    """Fill what the process itself does not say."""
    if by_siblings is None or number.rank is not None:
        return number
    if number.world_size is None:
        return by_siblings
    return replace(by_siblings, world_size=number.world_size, world_source=number.world_source)


def _same_number(number: Number, other: Number) -> bool:
    return (number.rank, number.local_rank) == (other.rank, other.local_rank) and (
        number.rank is not None or number.local_rank is not None
    )


def _world(team: Team, numbers: Sequence[Number], shape: Shape) -> tuple[int | None, str]:
    """The size that most ranks have, else the launcher's, else the count of a local job."""
    sizes = Counter(
        (number.world_size, number.world_source)
        for number in numbers
        if number.world_size is not None
    )
    if _started_plainly(team):
        return 1, "only-process"
    if sizes and team.kind != "single":
        (size, source), _ = sizes.most_common(1)[0]
        assert size is not None
        if not (team.kind == "spawn" and size < len(team.ranks)):
            return size, source
    if shape.world_size is not None and team.kind != "single":
        return shape.world_size, "arguments"
    if team.kind == "single":
        return 1, "only-process"
    if team.kind in ("spawn", "ray") and team.root is not None:
        arguments = program_of(team.root.argv).rest
        asked = from_arguments(arguments, Shape()).world_size or _asked_for(arguments)
        if asked is not None and asked >= len(team.ranks) and team.kind == "spawn":
            return asked, "arguments"
        if team.kind == "ray" or any(number.rank is not None for number in numbers):
            return len(team.ranks), "start-order"
        at = places([rank.cmdline for rank in team.ranks])
        return (at[-1] + 1, "start-order") if at else (None, "")
    return None, ""


def _started_plainly(team: Team) -> bool:
    """Whether `accelerate launch` starts one process without torchrun."""
    return (
        team.kind == "accelerate"
        and len(team.ranks) == 1
        and bool(team.ranks[0].environ)
        and from_environment(team.ranks[0].environ).world_size is None
    )


def _asked_for(arguments: Sequence[str]) -> int | None:
    """How many ranks a spawning script was asked for, by the usual option names."""
    names = "nproc nprocs num-procs nproc-per-node ngpus gpus num-gpus num-processes"
    return whole(option(arguments, *names.split()))


def _in_order_of_start(
    team: Team, numbers: Sequence[Number], shape: Shape, world: int | None
) -> list[Number]:
    """Number the rest by their start, where ranks are known to start in order."""
    found = list(numbers)
    if team.kind == "single" or _started_plainly(team):
        return [replace(each, rank=0, source="only-process") for each in found]
    if all(each.rank is not None for each in found) or not found:
        return found
    if team.kind == "spawn" and team.root is not None and team.root not in team.ranks:
        at: Sequence[int] | None = range(len(found))
        if world != len(found):
            at = places([rank.cmdline for rank in team.ranks])
        if at is not None and (world is None or at[-1] < world):
            return [
                each if each.rank is not None else _started_as(each, place, place)
                for each, place in zip(found, at)
            ]
    top_is_first = team.root is not None and team.ranks[0] is team.root
    if team.kind == "spawn" and top_is_first and found[0].rank is None:
        return [_started_as(found[0], 0, 0), *found[1:]]
    unnumbered = all(each.rank is None for each in found)
    if team.kind in ELASTIC and unnumbered and shape.nproc == len(found):
        return [_started_as(each, shape.rank_of(at), at) for at, each in enumerate(found)]
    return found


def _started_as(number: Number, rank: int | None, local_rank: int) -> Number:
    source = "start-order" if rank is not None else ""
    return replace(number, rank=rank, local_rank=local_rank, source=source)


def _by_store(team: Team, numbers: Sequence[Number]) -> list[Number]:
    """Rank 0 keeps the store, which its thread's name tells (torch 2.6 and newer), unless the
    launcher does.

    Where that contradicts the order of start, the ranks were not started in order, and none of
    those numbers is worth anything.
    """
    keepers = [
        place
        for place, rank in enumerate(team.ranks)
        if STRENGTH.get(numbers[place].source, 0) < STRENGTH["sockets"] and _keeps_store(rank)
    ]
    if (
        team.kind in ("single", "accelerate")
        or len(keepers) != 1
        or any(each.rank == 0 and each.source != "start-order" for each in numbers)
    ):
        return list(numbers)
    wrong = numbers[keepers[0]].rank not in (0, None)
    found = [
        Number(None, None, each.world_size, "", each.world_source)
        if wrong and each.source == "start-order"
        else each
        for each in numbers
    ]
    if found[keepers[0]].rank is None:
        found[keepers[0]] = replace(found[keepers[0]], rank=0, source="sockets")
    return found


def _keeps_store(process: ProcessRow) -> bool:
    return any(name.startswith("pt_tcpstore") for name in process.thread_names)
