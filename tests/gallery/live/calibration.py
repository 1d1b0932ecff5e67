"""What the confidences of the live gallery are worth: fitted on all other programs, then held
against the truth. Pure.
"""

from __future__ import annotations

import functools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.gallery.live.score import Result, fit, kind_of
from trainprobe.causes.priors import load_priors
from trainprobe.ranking import NAMED_CONFIDENCE, NAMED_MARGIN_POINTS, confidences

PRIORS = functools.cache(load_priors)
TEMPERATURES = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
LEVELS = tuple(float(level) for level in range(0, 16, 2))
CHOICES = tuple((level, temperature) for level in LEVELS for temperature in TEMPERATURES)
LEAST = 0.005  # no probability counts as less: one run that goes wrong must not decide the fit


def hypotheses(
    result: Result, unknown: float, temperature: float
) -> list[tuple[Mapping[str, Any], float, bool]]:
    """The candidates of the first group with their shares at this level of unknown and temperature,
    and whether each is right.

    They are worked out again from the points, by the rule of `trainprobe.ranking`; `unknown` comes
    last. Of a run whose verdict is wrong nothing is right.
    """
    group = result["causes"][0]["group"] if result["causes"] else 0
    rivals = sorted(
        (
            cause
            for cause in result["causes"]
            if cause["group"] == group and cause["id"] != "unknown"
        ),
        key=lambda cause: -cause["points"],
    )
    stated = next(
        (cause["ranks"] for cause in result["causes"] if cause["id"] == "unknown"),
        rivals[0]["ranks"] if rivals else [],
    )
    kept = [*rivals, {"id": "unknown", "ranks": stated, "points": unknown}]
    shares = confidences([float(cause["points"]) for cause in kept], temperature)
    fair = result["verdict"] in result["verdicts"]
    return [
        (cause, part, fair and fit(cause, result) == (True, True))
        for cause, part in zip(kept, shares, strict=True)
    ]


def first_of(result: Result, unknown: float, temperature: float) -> tuple[str, float, bool]:
    """What stands first at this level of unknown and temperature: its id, its confidence, and
    whether it is right.

    Where nothing was said of an ill job that is a miss without any confidence.
    """
    if not result["causes"]:
        return "none", 0.0, False
    rows = hypotheses(result, unknown, temperature)
    cause, part, right = rows[0]
    margin = cause["points"] - max((row[0]["points"] for row in rows[1:]), default=-math.inf)
    if len(rows) > 1 and part >= NAMED_CONFIDENCE and margin >= NAMED_MARGIN_POINTS:
        return cause["id"], part, right
    return "unknown", rows[-1][1], rows[-1][2]


def brier_of(result: Result, unknown: float, temperature: float) -> float:
    """The Brier score over all hypotheses: the right ones together against 1, every other
    against 0. Nothing said is as bad as all on a wrong one.
    """
    if not result["causes"]:
        return 2.0
    rows = hypotheses(result, unknown, temperature)
    return (1 - sum(part for _, part, right in rows if right)) ** 2 + sum(
        part**2 for _, part, right in rows if not right
    )


def brier_of_priors(result: Result) -> float:
    """The same for somebody who has the priors and the level of unknown and nothing else, but is
    told the ranks.
    """
    priors = PRIORS()
    mode = "slow" if result["verdicts"][0] == "slow" else "hang"
    names = [name for name, prior in priors.causes.items() if mode in prior.points]
    shares = confidences(
        [*(priors.prior(name, mode) for name in names), priors.unknown], priors.temperature
    )
    accepted = {name for ids, _ in result["truths"] for name in ids}
    rows = list(zip([*names, "unknown"], shares, strict=True))
    return (1 - sum(part for name, part in rows if name in accepted)) ** 2 + sum(
        part**2 for name, part in rows if name not in accepted
    )


def loss_of(result: Result, unknown: float, temperature: float) -> float:
    """The log loss of the share on what is right; where no candidate is right, that of `unknown`,
    which stands for all that is not listed.

    It is proper: no level or temperature gains by hiding a right answer behind `unknown` or by
    spreading the shares.
    """
    rows = hypotheses(result, unknown, temperature) if result["causes"] else []
    right = sum(part for _, part, fits in rows if fits) or (rows[-1][1] if rows else 0.0)
    return -math.log(max(LEAST, right))


def fitted(results: Sequence[Result]) -> tuple[float, float]:
    """The level of unknown and the temperature with the least log loss; of equals the ones
    nearest to 6 and 1.
    """
    return _best(
        {
            choice: sum(loss_of(result, *choice) for result in results if result["truths"])
            for choice in CHOICES
        }
    )


def _best(losses: Mapping[tuple[float, float], float]) -> tuple[float, float]:
    return min(
        losses,
        key=lambda choice: (round(losses[choice], 6), abs(choice[0] - 6) + abs(choice[1] - 1)),
    )


@dataclass(frozen=True)
class Judged:
    """One ill run at a level and temperature; `left_out` fits them without its program."""

    result: Result
    id: str
    confidence: float
    right: bool
    brier: float
    brier_of_priors: float = 1.0

    @property
    def named(self) -> bool:
        """A cause is named: neither `unknown` nor nothing at all."""
        return self.id not in ("unknown", "none")


def left_out(results: Sequence[Result]) -> list[Judged]:
    """Each ill run with its first place, at the level and temperature that were fitted on the
    kinds that run another program.
    """
    ill = [result for result in results if result["truths"]]
    programs: dict[str, list[Result]] = defaultdict(list)
    for result in ill:
        programs[str(result.get("program", kind_of(result)))].append(result)
    losses = {
        choice: {
            name: sum(loss_of(result, *choice) for result in rows)
            for name, rows in programs.items()
        }
        for choice in CHOICES
    }
    made = []
    for name, rows in programs.items():
        best = _best(
            {
                choice: sum(loss for other, loss in losses[choice].items() if other != name)
                for choice in CHOICES
            }
        )
        made += [at(result, *best) for result in rows]
    return made


def at(result: Result, unknown: float, temperature: float) -> Judged:
    return Judged(
        result,
        *first_of(result, unknown, temperature),
        brier_of(result, unknown, temperature),
        brier_of_priors(result),
    )


Pair = tuple[float, bool]


def bins(pairs: Iterable[Pair], most: int = 10) -> list[tuple[int, float, float]]:
    """About equally full bins of confidence: how many, their mean confidence, their share of
    right ones. Equal confidences stay together.
    """
    kept = sorted((round(part, 4), right) for part, right in pairs)
    full, made, start = max(1, math.ceil(len(kept) / most)), [], 0
    while start < len(kept):
        end = min(len(kept), start + full)
        while end < len(kept) and kept[end][0] == kept[end - 1][0]:
            end += 1
        part = kept[start:end]
        made.append(
            (
                len(part),
                sum(one for one, _ in part) / len(part),
                sum(right for _, right in part) / len(part),
            )
        )
        start = end
    return made


def calibration_error(pairs: Iterable[Pair]) -> float:
    """The expected calibration error over adaptive bins."""
    rows = bins(pairs)
    total = sum(count for count, _, _ in rows)
    return sum(count * abs(mean - share) for count, mean, share in rows) / max(1, total)


def resampled(
    placed: Sequence[Judged], number: Callable[[Sequence[Judged]], float], times: int = 500
) -> tuple[float, float]:
    """The 95 % interval of a number when whole kinds are drawn with replacement: the runs of one
    kind are not independent.
    """
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for judged in placed:
        kinds[kind_of(judged.result)].append(judged)
    chance, names = random.Random(1), sorted(kinds)
    drawn = sorted(
        number([judged for name in chance.choices(names, k=len(names)) for judged in kinds[name]])
        for _ in range(times)
    )
    return drawn[int(0.025 * times)], drawn[int(0.975 * times)]


def separation(pairs: Iterable[Pair]) -> float | None:
    """How often a right answer has the higher confidence than a wrong one (0.5: the number says
    nothing); None without both.
    """
    kept = list(pairs)
    good, bad = [part for part, right in kept if right], [part for part, right in kept if not right]
    wins = sum((one > other) + (one == other) / 2 for one in good for other in bad)
    return wins / (len(good) * len(bad)) if good and bad else None


def risk_coverage(
    placed: Sequence[Judged], steps: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)
) -> list[tuple[float, float]]:
    """For the most confident part of all ill runs, the share that is wrong. Only a named cause
    covers a run; the last row is all of them.

    Runs of equal confidence count with their mean: no order among them is assumed.
    """
    named = [(judged.confidence, judged.right) for judged in placed if judged.named]
    groups: dict[float, list[bool]] = defaultdict(list)
    for part, right in named:
        groups[round(part, 4)].append(right)
    expected = [
        sum(not right for right in groups[part]) / len(groups[part])
        for part in sorted(groups, reverse=True)
        for _ in groups[part]
    ]
    counts = sorted(
        {
            *(
                round(step * len(placed))
                for step in steps
                if round(step * len(placed)) <= len(named)
            ),
            len(named),
        }
        - {0}
    )
    return [(count / len(placed), sum(expected[:count]) / count) for count in counts]
