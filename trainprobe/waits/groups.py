"""All groups of suspects of a case: for each cell that did not pass, by hang, by crash or by
check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, Rung, SilentNode
from trainprobe.waits.crash import crash_groups
from trainprobe.waits.data_parallel import spread_groups
from trainprobe.waits.grid import (
    ANSWERED,
    COMMAND,
    FAILING,
    command_cells,
    failing_cells,
    is_knob,
    outgrown_by,
    smallest_failing,
)
from trainprobe.waits.hang import hang_groups
from trainprobe.waits.leftovers import leftover_groups
from trainprobe.waits.model_stress import stressed_groups
from trainprobe.waits.standings import Standing, standings
from trainprobe.waits.suspects import Mode, SuspectGroup

_MODE_ORDER = {"hang": 0, "crash": 0, "slow": 1, "check": 2}
HANG_S = 20.0  # a silence below this is no hang yet: the ladder's own stall_s


def failing_rungs(facts: Facts) -> tuple[Rung, ...]:
    """The cells to judge, one for each rung that failed.

    Of a rung that failed at several sizes the largest, since two ranks cannot outvote each other. A
    rung that passed at its full size has passed: a program may rightly refuse to run on fewer ranks
    than it is made for. Of the user's command over rows the smallest, for there the least is in the
    way of what went wrong; and cells with a changed knob are no answer about the command.
    """
    largest: dict[tuple[str, str], Rung] = {}
    by_rows = any(rung.rows is not None for rung in command_cells(facts))
    for rung in facts.of(Rung):
        known = (
            rung.outcome in ANSWERED
            and not is_knob(rung)
            and not (by_rows and rung.probe == COMMAND)
        )
        key = (rung.probe, rung.hosts[0] if rung.alone else "")
        if known and (key not in largest or rung.nproc >= largest[key].nproc):
            largest[key] = rung
    judged = _of_grid(facts) if by_rows else None
    found = [*largest.values(), *([judged] if judged is not None else [])]
    return tuple(
        sorted(
            (rung for rung in found if rung.outcome in FAILING),
            key=lambda rung: (rung.rung, rung.nproc),
        )
    )


def _of_grid(facts: Facts) -> Rung | None:
    """The smallest failing cell; where its ranks stand against each other, half against half, a
    larger world that failed in the same way.
    """
    smallest = smallest_failing(facts)
    if (
        smallest is None
        or smallest.outcome != "timed_out"
        or not any(_undecided(group) for group in groups_of(facts, smallest))
    ):
        return smallest
    wider = [
        rung
        for rung in failing_cells(facts)
        if rung.nproc > max(2, smallest.nproc) and rung.outcome == smallest.outcome
    ]
    return next(
        (rung for rung in wider if not any(_undecided(group) for group in groups_of(facts, rung))),
        smallest,
    )


def _undecided(group: SuspectGroup) -> bool:
    """Two camps of one size: neither can be told to be in the wrong."""
    return (
        group.mode == "hang" and len(group.camps) > 1 and len(group.camps[0]) == len(group.camps[1])
    )


def outgrown_rungs(facts: Facts) -> tuple[Rung, ...]:
    """The cells that failed although a larger one of the same rung passed."""
    cells = command_cells(facts)
    passed = {
        rung.probe: rung.nproc
        for rung in facts.of(Rung)
        if rung.outcome == "passed" and rung.probe != COMMAND
    }
    others = [
        rung
        for rung in facts.of(Rung)
        if rung.outcome in FAILING and passed.get(rung.probe, 0) > rung.nproc
    ]
    return (
        *others,
        *(rung for rung in cells if rung.outcome in FAILING and outgrown_by(rung, cells)),
    )


def suspect_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """The groups of every failing cell: by mode, then in the order of the ladder."""
    failed = _alike_together(
        [(rung, group) for rung in failing_rungs(facts) for group in groups_of(facts, rung)]
    )
    # where a rung failed, both are weighed beside its own evidence
    found = failed or (*leftover_groups(facts), *spread_groups(facts))
    return tuple(by_mode(found))


def by_mode(groups: Sequence[SuspectGroup]) -> list[SuspectGroup]:
    """What has stopped a job comes before what slows it down, and that before a mere risk."""
    return sorted(groups, key=lambda group: _MODE_ORDER[group.mode])


def _alike_together(found: Sequence[tuple[Rung, SuspectGroup]]) -> tuple[SuspectGroup, ...]:
    """Of nodes on which a probe of the host came out alike, one group stands for all: it names
    them, and its evidence is that of the first.
    """
    groups: list[SuspectGroup] = []
    first: dict[tuple[str, str, str], int] = {}
    for rung, group in found:
        key = (group.probe, group.how, group.says)
        if rung.alone and key in first:
            same = groups[first[key]]
            groups[first[key]] = replace(
                same, hosts=tuple(dict.fromkeys((*same.hosts, *group.hosts)))
            )
            continue
        if rung.alone:
            first[key] = len(groups)
        groups.append(group)
    return tuple(groups)


def groups_of(facts: Facts, rung: Rung) -> tuple[SuspectGroup, ...]:
    """The groups of one failing cell; never empty."""
    found = stressed_groups(facts, rung)
    if found and rung.outcome == "failed":
        return found
    ranks = standings(facts, rung)
    waiting = [standing for standing in ranks if standing.alive]
    died = [standing for standing in ranks if standing.state == "crashed"]
    groups: tuple[SuspectGroup, ...] = ()
    if died or rung.outcome != "timed_out":
        groups = crash_groups(facts, rung, ranks)
    if (
        not groups
        and waiting
        and (
            rung.outcome == "timed_out"
            or rung.stopped_because in ("stall", "first_output", "fault")
        )
    ):
        groups = tuple(
            _because_of_nodes(facts, rung, group) for group in hang_groups(facts, rung, ranks)
        )
    return (*(groups or (_whole_cell(rung, ranks),)), *found)


def _because_of_nodes(facts: Facts, rung: Rung, group: SuspectGroup) -> SuspectGroup:
    """Ranks that nobody saw because their node gives no answer any more."""
    silent = [one for one in facts.of(SilentNode, cell=rung.cell) if one.host in group.hosts]
    if group.how != "not-visible" or not silent:
        return group
    says = f"{group.says}: {'; '.join(one.says for one in silent)}"
    return replace(
        group,
        says=says,
        evidence=tuple(
            dict.fromkeys((*group.evidence, *(id_ for one in silent for id_ in one.evidence)))
        ),
    )


def is_hung(facts: Facts, rung: Rung) -> bool:
    """Live ranks waited and made no progress, even if a peer is dead.

    Where a rank failed and the ladder ended the others soon after, they had waited for less than
    any hang is told by: what is known is the failure.
    """
    if rung.outcome == "timed_out":
        return True
    ranks = standings(facts, rung)
    if (
        rung.stopped_because == "fault"
        and (rung.silent_s or 0.0) < HANG_S
        and any(standing.state == "crashed" for standing in ranks)
    ):
        return any(standing.state in ("stopped", "blocked") for standing in ranks)
    return any(
        standing.alive and standing.state in ("waiting", "stopped", "blocked", "spinning")
        for standing in ranks
    )


def _whole_cell(rung: Rung, ranks: tuple[Standing, ...]) -> SuspectGroup:
    """Nothing tells the ranks apart: the host, the code or the launch is the suspect."""
    mode: Mode = "check"
    if rung.outcome == "timed_out":
        mode = "hang"
    elif (
        rung.outcome == "crashed" or rung.probe == COMMAND
    ):  # the run itself has ended, and not as it should
        mode = "crash"
    several = tuple(sorted(rung.ranks)) if 0 < len(rung.ranks) < rung.nproc else ()
    theirs = [standing for standing in ranks if standing.rank in several] or ranks
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=several,
        how="failed-first" if mode != "hang" else "stuck-inside",
        says=rung.says or f"{rung.probe} did not pass",
        mode=mode,
        evidence=rung.evidence,
        world_size=max(rung.nproc, 1),
        hosts=tuple(
            sorted(
                {standing.host for standing in (theirs if rung.hosts else ranks) if standing.host}
            )
        ),
    )
