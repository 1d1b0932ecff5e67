"""Ranks that one script started side by side, under a number that has a name of its own choice.

A loop in a shell, GNU parallel or a small launcher starts one command several times, and the copies
differ in a number: `MY_RANK=$i`, `--node_rank $i`, SLURM_PROCID in a script without srun. A name
that says "rank" needs nothing more. Any other number (a seed, a fold, a device) may just as well be
that of a trial, so it counts only among processes that share an address or talk to each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from trainprobe.targets.numbers import ADDRESS_OPTIONS, Number
from trainprobe.targets.process_table import ProcessRow, Table, in_order
from trainprobe.targets.programs import option, program_of, whole

RANK = re.compile(r"(?:.*_)?(?:rank(?:_?id)?|proc_?id|process_(?:id|index|rank))")
# Of several, the number within the node or of the node is the second choice.
PARTIAL = re.compile(r"(?:.*_)?(?:local|node|machine|group)(?:_.*)?")
WORLD = re.compile(
    r"(?:.*_)?(?:world(?:_size)?|n_?tasks|n_?procs|n_?ranks|num_(?:tasks|procs|ranks|processes))"
)
ADDRESS = re.compile(r"(?:.*_)?(?:port|addr|address|method|url|endpoint)")
_HYDRA = re.compile(r"\+{0,2}([A-Za-z][\w.]*)=(.*)")

Sign = Callable[[ProcessRow], object]
Way = Callable[[Sequence[ProcessRow]], dict[int, Number]]


def numbers_side_by_side(table: Table, found: Sequence[ProcessRow]) -> list[dict[int, Number]]:
    """Return the teams among processes that no launcher answers for, each as numbers by pid."""
    kin: dict[object, list[ProcessRow]] = {}
    for process in sorted(found, key=in_order):
        program = program_of(process.argv)
        if program.kind in ("script", "module"):
            sign = program.name, len(process.argv), _started_by(table, process)
            kin.setdefault(sign, []).append(process)
    teams = []
    for copies in kin.values():
        for team in _by(lambda process: process.uid, copies) if len(copies) > 1 else ():
            teams += list(_teams(table, team))
    return teams


def _started_by(table: Table, process: ProcessRow) -> int:
    """What started it and others, past shells and wrappers of one child; the session (negative)
    of one that was left to itself.
    """
    for above in table.ancestors(process):
        if above.pid == 1:
            break
        if above.is_python or len(table.children(above)) > 1:
            return above.pid
    return -process.session


def _teams(table: Table, copies: Sequence[ProcessRow]) -> Iterator[dict[int, Number]]:
    """Part copies of one command until each number stands once in a part."""
    signs: tuple[Sign, ...] = (
        lambda _: None,
        _address,
        lambda process: process.argv,
        _command,
        lambda process: process.group,
    )
    ways: tuple[Way, ...] = (_by_name, partial(_of_tied, table))
    for way, sign in product(ways, signs):
        parts = [part for part in _by(sign, copies) if len(part) > 1]
        numbered = [way(part) for part in parts]
        if parts and all(numbered):
            yield from numbered
            return


def _by(sign: Sign, copies: Sequence[ProcessRow]) -> list[list[ProcessRow]]:
    parts: dict[object, list[ProcessRow]] = {}
    for process in copies:
        parts.setdefault(sign(process), []).append(process)
    return list(parts.values())


def _address(process: ProcessRow) -> object:
    return tuple(sorted(pair for pair in _named(process) if ADDRESS.fullmatch(pair[0])))


def _command(process: ProcessRow) -> object:
    return tuple(re.sub(r"\d+", "#", word) for word in process.argv)


def _by_name(copies: Sequence[ProcessRow]) -> dict[int, Number]:
    """Numbers by a name that says that it is a rank; empty where there is none."""
    values = _distinct(copies)
    names = sorted((name for name in values if RANK.fullmatch(name)), key=_second_choice)
    world = _world(copies)
    for name in names:
        if max(values[name]) < (world or 2 * len(copies)):
            locals_ = [each for each in names if re.search(r"(?:^|_)local", each)]
            local = values[locals_[0]] if locals_ else [None] * len(copies)
            return {
                process.pid: _number(rank, its, world)
                for process, rank, its in zip(copies, values[name], local)
            }
    return {}


def _of_tied(table: Table, copies: Sequence[ProcessRow]) -> dict[int, Number]:
    """Numbers of copies that belong together by what they share: by any number in which they
    differ, counted from 0 or from 1, else by their start.
    """
    world = _world(copies)
    if not (_share_address(copies) or _talk(table, copies)):
        return {}
    size = world or len(copies)
    for values in _distinct(copies).values():
        first = 1 if min(values) > 0 and max(values) == size else 0
        if max(values) - first < size:
            return {
                process.pid: _number(value - first, None, world)
                for process, value in zip(copies, values)
            }
    return {
        process.pid: Number(place, None, world, "start-order", "siblings" if world else "")
        for place, process in enumerate(copies)
    }


def _number(rank: int, local: int | None, world: int | None) -> Number:
    return Number(rank, local, world, "siblings", "siblings" if world is not None else "")


def _second_choice(name: str) -> tuple[bool, str]:
    return PARTIAL.fullmatch(name) is not None, name


def _world(copies: Sequence[ProcessRow]) -> int | None:
    """The size of the world that all of them were told, more than one."""
    for name, value in _wholes(copies[0]).items():
        if (
            WORLD.fullmatch(name)
            and value > 1
            and all(_wholes(each).get(name) == value for each in copies)
        ):
            return value
    return None


def _distinct(copies: Sequence[ProcessRow]) -> dict[str, list[int]]:
    """The named numbers that all of them have, and each a different one."""
    rows = [_wholes(process) for process in copies]
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    values = {name: [row[name] for row in rows] for name in shared}
    return {name: each for name, each in values.items() if len(set(each)) == len(each)}


def _wholes(process: ProcessRow) -> Mapping[str, int]:
    """The whole numbers among them; that of a word without a name by its place."""
    known: dict[str, int] = process.__dict__.setdefault("_wholes", {})
    for name, text in () if known else _named(process):
        value = whole(text)
        if value is not None:
            known.setdefault(name, value)
    return known


def _named(process: ProcessRow) -> list[tuple[str, str]]:
    """Its arguments and then its environment, by plain names."""
    rest = program_of(process.argv).rest
    pairs = []
    for place, word in enumerate(rest):
        if word.startswith("-"):
            name = word.partition("=")[0].lstrip("-")
            pairs.append((name, option(rest[place : place + 2], name)))
        elif match := _HYDRA.fullmatch(word):
            pairs.append((match.group(1), match.group(2)))
        else:
            pairs.append((f"#{place}", word))
    pairs += process.environ.items()
    return [(re.sub(r"[.-]", "_", name.lower()), text) for name, text in pairs]


def _share_address(copies: Sequence[ProcessRow]) -> bool:
    """Whether all were told one place to meet."""
    places = {
        (
            process.environ.get("MASTER_PORT", ""),
            option(program_of(process.argv).rest, *ADDRESS_OPTIONS),
        )
        for process in copies
    }
    return len(places) == 1 and any(next(iter(places)))


def _talk(table: Table, copies: Sequence[ProcessRow]) -> bool:
    """Whether TCP connections lead from some of them to others, and these all hang together."""
    ends = [table.tcp_ends(process, process.sockets) for process in copies]
    owner = {local: place for place, pairs in enumerate(ends) for local, _ in pairs}
    team = list(range(len(copies)))  # by place, one whose team it is in

    def first(place: int) -> int:
        while team[place] != place:
            team[place] = team[team[place]]
            place = team[place]
        return place

    for place, pairs in enumerate(ends):
        for _, remote in pairs:
            team[first(place)] = first(owner.get(remote, place))
    sizes = Counter(first(place) for place in range(len(copies)))
    return sum(size > 1 for size in sizes.values()) == 1
