"""What is known of a cell of the user's command once it is over, as far as its outcome rests on it: of one host, or of several put together. Pure but for `told_of`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainprobe.ladder.outcome import Answered
from trainprobe.ladder.settle import Settled
from trainprobe.ladder.watch import Watch
from trainprobe.model.evidence import Ended

MOST_MEASURES = 200


@dataclass(frozen=True)
class RankTold:
    """One rank: how it ended, and what its witness and its output told. `empty`: its loader gave no batch. `worked`: it made batches or backward calls."""

    rank: int
    ended: Ended | None = None
    steps: int = 0
    witnessed: bool = False
    empty: bool = False
    worked: bool = False
    uncounted: bool = False
    torch: bool = False


@dataclass(frozen=True)
class Told:
    """`printed` counts the steps in a stream that ranks share, `ran` says that any process made steps or batches. Times in seconds since the start of the cell.

    `measures` are rows of `cell.measures`. `answers` are those of a probe, one for each of its processes.
    """

    ranks: tuple[RankTold, ...] = ()
    launcher: Ended | None = None
    command: bool = False
    printed: int = 0
    collectives: bool = False
    ran: bool = False
    first_sign_s: float | None = None
    measures: tuple[Mapping[str, Any], ...] = ()
    answers: tuple[Answered, ...] = ()
    bad_lines: int = 0

    @property
    def endings(self) -> dict[int, Ended]:
        return {one.rank: one.ended for one in self.ranks if one.ended is not None}


def told_of(watch: Watch, settled: Settled) -> Told:
    """Put together what one host knows."""
    signs, endings = watch.signs, settled.of_ranks()
    ranks = sorted(endings) or [watch.launch.first]
    alone = len(ranks) <= 1
    rows = []
    for rank in ranks:
        some = [one for one in signs.by_pid.values() if one.rank == rank or (one.rank is None and alone)]
        rows.append(
            RankTold(
                rank,
                endings.get(rank),
                max([signs.steps(rank, alone=alone), *(one.steps for one in some)]),
                witnessed=bool(some),
                empty=any(one.loader_empty for one in some),
                worked=any(one.batches or one.backward_calls for one in some),
                uncounted=any(one.steps_uncounted for one in some),
                torch=any(one.torch_imported for one in some),
            )
        )
    return Told(
        tuple(rows),
        launcher=settled.of_launcher(),
        command=watch.launch.command,
        printed=len(signs.printed.get(None, ())),
        collectives=watch.collectives_seen(),
        ran=any(one.steps or one.batches for one in signs.by_pid.values()),
        first_sign_s=round(max(0.0, signs.first_sign_at - watch.began_at), 2) if signs.first_sign_at else None,
    )


def together(parts: Sequence[Told]) -> Told:
    """One of the parts of several hosts. Of launchers the one that failed first speaks."""
    launchers = [part.launcher for part in parts if part.launcher is not None]
    bad = [one for one in launchers if not one.by_us and not (one.how == "exited" and one.code in (0, None))]
    firsts = [part.first_sign_s for part in parts if part.first_sign_s is not None]
    return Told(
        tuple(sorted((row for part in parts for row in part.ranks), key=lambda row: row.rank)),
        launcher=min(bad, key=lambda one: one.at or float("inf")) if bad else next(iter(launchers), None),
        command=any(part.command for part in parts),
        printed=max((part.printed for part in parts), default=0),
        collectives=any(part.collectives for part in parts),
        ran=any(part.ran for part in parts),
        first_sign_s=min(firsts, default=None),
        measures=_largest([row for part in parts for row in part.measures]),
        answers=tuple(one for part in parts for one in part.answers),
        bad_lines=sum(part.bad_lines for part in parts),
    )


def _largest(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Of the hosts' measures of one name the largest: the memory of one host is no part of another's."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows[: MOST_MEASURES * 256]:
        name, value = row.get("name"), row.get("value")
        if isinstance(name, str) and isinstance(value, (int, float)) and (name not in found or value > found[name]["value"]):
            found[name] = row
    return tuple(found.values())[:MOST_MEASURES]
