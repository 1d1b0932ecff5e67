"""The facts about a finished cell of the user's command on which its outcome rests, from one host
or merged from several. Pure except for `record_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainprobe.ladder.outcome import Answered, failed
from trainprobe.ladder.settle import Settled
from trainprobe.ladder.watch import Watch
from trainprobe.model.evidence import Ended

MOST_MEASURES = 200


@dataclass(frozen=True)
class RankRecord:
    """One rank: how it ended, and what its witness and its output showed. `empty`: its loader gave
    no batch. `worked`: it made batches or backward calls.
    """

    rank: int
    ended: Ended | None = None
    steps: int = 0
    witnessed: bool = False
    empty: bool = False
    worked: bool = False
    uncounted: bool = False
    torch: bool = False


@dataclass(frozen=True)
class CellRecord:
    """`printed` counts the steps in a stream that ranks share, `ran` says that any process made
    steps or batches. Times in seconds since the start of the cell.

    `measures` are rows of `cell.measures`. `answers` are those of a probe, one for each of its
    processes.
    """

    ranks: tuple[RankRecord, ...] = ()
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
        return {rank.rank: rank.ended for rank in self.ranks if rank.ended is not None}


def record_of(watch: Watch, settled: Settled) -> CellRecord:
    """Collect what one host knows."""
    signs, endings = watch.signs, settled.of_ranks()
    ranks = sorted(endings) or [watch.launch.first]
    alone = len(ranks) <= 1
    rows = []
    for rank in ranks:
        owners = (rank, None) if alone else (rank,)
        some = [item for item in signs.by_pid.values() if item.rank in owners]
        rows.append(
            RankRecord(
                rank,
                endings.get(rank),
                max([signs.steps(rank, alone=alone), *(item.steps for item in some)]),
                witnessed=bool(some),
                empty=any(item.loader_empty for item in some),
                worked=any(item.batches or item.backward_calls for item in some),
                uncounted=any(item.steps_uncounted for item in some),
                torch=any(item.torch_imported for item in some),
            )
        )
    return CellRecord(
        tuple(rows),
        launcher=settled.of_launcher(),
        command=watch.launch.command,
        printed=len(signs.printed.get(None, ())),
        collectives=watch.collectives_seen(),
        ran=any(item.steps or item.batches for item in signs.by_pid.values()),
        first_sign_s=(
            round(max(0.0, signs.first_sign_at - watch.began_at), 2)
            if signs.first_sign_at
            else None
        ),
    )


def merged(parts: Sequence[CellRecord]) -> CellRecord:
    """Merge the parts of several hosts. Of several launchers the first that failed counts."""
    launchers = [part.launcher for part in parts if part.launcher is not None]
    bad = [launcher for launcher in launchers if failed(launcher)]
    firsts = [part.first_sign_s for part in parts if part.first_sign_s is not None]
    return CellRecord(
        tuple(sorted((row for part in parts for row in part.ranks), key=lambda row: row.rank)),
        launcher=min(bad or launchers[:1], key=lambda end: end.at or float("inf"), default=None),
        command=any(part.command for part in parts),
        printed=max((part.printed for part in parts), default=0),
        collectives=any(part.collectives for part in parts),
        ran=any(part.ran for part in parts),
        first_sign_s=min(firsts, default=None),
        measures=_largest([row for part in parts for row in part.measures]),
        answers=tuple(answer for part in parts for answer in part.answers),
        bad_lines=sum(part.bad_lines for part in parts),
    )


def _largest(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Of the hosts' measures of one name the largest: the memory of one host is no part of
    another's.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows[: MOST_MEASURES * 256]:
        name, value = row.get("name"), row.get("value")
        if (
            isinstance(name, str)
            and isinstance(value, (int, float))
            and (name not in found or value > found[name]["value"])
        ):
            found[name] = row
    return tuple(found.values())[:MOST_MEASURES]
