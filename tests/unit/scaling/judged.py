"""How good the predictions are, over invented sets of known law: `python -m
tests.unit.scaling.judged` writes results.json, which docs/predictions.md shows.

The constants of the fit were found on the seeds of `FOUND_ON`; every number that is shown or tested
comes from those below.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.scaling.invented import LAWS, Invented, hidden_square, invent, step_unforeseen
from trainprobe.scaling import Interval, Point, announced, fit, interval

RESULTS = Path(__file__).with_name("results.json")
FOUND_ON = range(1000, 1110)
SHOWN = range(100)
TESTED = range(8)
"""The default test takes these; the page all of `SHOWN`."""


@dataclass(frozen=True)
class Judged:
    """One set with what was predicted."""

    one: Invented
    law: str
    interval: Interval
    announced: bool

    @property
    def inside(self) -> bool:
        return self.interval.low <= self.one.truth <= self.interval.high

    @property
    def inside_seen(self) -> bool:
        """Is one more noisy measurement at the target inside?"""
        return self.interval.low <= self.one.seen <= self.interval.high

    @property
    def error(self) -> float:
        return abs(self.interval.value / self.one.truth - 1)


def judge(one: Invented) -> Judged:
    """Predict the value at the target, and whether the limit is passed there. Only the points
    and the two sizes go in.
    """
    found = fit(Point(size, value) for size, value in one.points)
    return Judged(
        one, found.law, interval(found, one.target), announced(found, one.target, one.limit)
    )


def judged(seeds: Iterable[int]) -> list[Judged]:
    """Every law at every seed."""
    own = list(seeds)
    return [judge(invent(law, seed)) for law in LAWS for seed in own]


def figures(rows: Sequence[Judged]) -> dict[str, Any]:
    """Coverage, error and announcements of these sets. Shares are None where there is nothing to
    count.
    """
    clear = [row for row in rows if not row.one.close]
    return {
        "sets": len(rows),
        "inside": _share([row.inside for row in rows]),
        "inside_seen": _share([row.inside_seen for row in rows]),
        "median_error": round(statistics.median(row.error for row in rows), 4),
        "median_width": round(
            statistics.median(row.interval.high / row.interval.low for row in rows), 2
        ),
        "hits": sum(row.one.hit for row in clear),
        "announced": _share([row.announced for row in clear if row.one.hit]),
        "no_hits": sum(not row.one.hit for row in clear),
        "falsely": _share([row.announced for row in clear if not row.one.hit]),
        "close": len(rows) - len(clear),
        "announced_all": _share([row.announced for row in rows if row.one.hit]),
        "falsely_all": _share([row.announced for row in rows if not row.one.hit]),
    }


def _share(answers: Sequence[bool]) -> float | None:
    return round(sum(answers) / len(answers), 4) if answers else None


def results() -> dict[str, Any]:
    """Return what the page shows."""
    rows = judged(SHOWN)
    return {
        "all": figures(rows),
        "by_law": {law: figures([row for row in rows if row.one.law == law]) for law in LAWS},
        "by_sizes": {
            str(count): figures(
                [row for row in rows if len({size for size, _ in row.one.points}) == count]
            )
            for count in range(3, 9)
        },
        "apart": {
            "a step between the largest size and the target": figures(
                [judge(step_unforeseen(seed)) for seed in SHOWN]
            ),
            "a square within the noise": figures([judge(hidden_square(seed)) for seed in SHOWN]),
        },
    }


if __name__ == "__main__":
    RESULTS.write_text(json.dumps(results(), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(results()["all"], indent=1) + "\n")
