"""Scores of the live gallery: what is right, who is blamed, and how that compares with simple
rules. Pure; results in, numbers out.

What the confidences are worth is in `calibration`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Result = Mapping[str, Any]
BLAMING = ("hung", "slow", "crashed", "at-risk")
SURE = 0.8


def outcome_of(result: Result) -> str:
    """Return `right`, `top3`, `cause` (ranks wrong), `ranks` (cause wrong) or `wrong`; of a
    healthy run `right`, `open` or `alarm`.
    """
    causes = result["causes"]
    if not result["truths"]:
        blamed = any(cause["id"] != "none" for cause in causes) or result["verdict"] in BLAMING
        return "alarm" if blamed else "right" if result["verdict"] in result["verdicts"] else "open"
    fits = [fit(cause, result) for cause in causes[:3]]
    if not fits:
        return "wrong"
    if fits[0] == (True, True):
        return "right" if result["verdict"] in result["verdicts"] else "top3"
    if (True, True) in fits:
        return "top3"
    return "cause" if fits[0][0] else "ranks" if fits[0][1] else "wrong"


def fit(cause: Mapping[str, Any], result: Result) -> tuple[bool, bool]:
    """Is the cause right, and are the ranks right? Both of one and the same truth where there is
    such a one.
    """
    found = [
        (cause["id"] in ids, list(cause["ranks"]) in [list(ranks) for ranks in sets])
        for ids, sets in result["truths"]
    ]
    return (
        (True, True)
        if (True, True) in found
        else (any(one for one, _ in found), any(one for _, one in found))
    )


def wilson(hits: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson (1927)."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, hits / of
    middle, spread = (
        share + z * z / (2 * of),
        z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)),
    )
    return max(0.0, (middle - spread) / (1 + z * z / of)), min(
        1.0, (middle + spread) / (1 + z * z / of)
    )


def kind_of(result: Result) -> str:
    return str(result["plan"]["kind"])


def stated(result: Result) -> tuple[str, list[int], float]:
    """What the report itself puts first: id, ranks and the confidence it states."""
    first: Mapping[str, Any] = (
        result["causes"][0] if result["causes"] else {"id": "none", "ranks": [], "confidence": 0.0}
    )
    return str(first["id"]), list(first["ranks"]), float(first["confidence"])


def blames_the_innocent(result: Result) -> bool:
    """Ranks are named first, with a stated confidence of at least 0.8, of which one has nothing to
    do with it.

    Where the fault is nobody's, only naming nobody or all ranks blames nobody.
    """
    name, ranks, confidence = stated(result)
    if confidence < SURE or name in ("unknown", "none") or not ranks:
        return False
    accepted = [list(one) for _, sets in result["truths"] for one in sets]
    guilty = {
        rank for _, sets in result["truths"] for rank in sets[0]
    }  # the first set is the narrowest truth
    return ranks not in accepted and not set(ranks) <= guilty


def wrong_and_sure(result: Result) -> bool:
    """A cause or ranks that are wrong stand first with a stated confidence of at least 0.8."""
    name, _, confidence = stated(result)
    return (
        confidence >= SURE
        and name not in ("unknown", "none")
        and fit(result["causes"][0], result) != (True, True)
    )


def share(results: Iterable[Result], test: Callable[[Result], bool]) -> tuple[int, int]:
    """How many pass, of how many."""
    kept = list(results)
    return sum(1 for result in kept if test(result)), len(kept)


def by_kind(results: Iterable[Result], test: Callable[[Result], bool]) -> tuple[float, float]:
    """The 95 % interval if the runs of one kind told no more than one run: Wilson's, with as many
    trials as there are kinds.

    Runs of a kind are one program at other sizes, ranks, seeds, launches and forms; they are far
    from independent.
    """
    shares: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        shares[kind_of(result)].append(test(result))
    mean = sum(sum(passed) / len(passed) for passed in shares.values())
    return wilson(mean, len(shares))


def rule_outcome(result: Result, rule: str) -> str | None:
    """Whom a simple rule blames: `right`, `wrong`, `nobody` (no answer), or None where it had
    nothing to go by.

    Naming nobody is right where no rank is to blame, unless the rule crashed or was late.
    """
    ranks = result["guesses"].get(rule)
    if ranks is None:
        return None
    if (
        not ranks
        and (result.get("analyzer") or {}).get(rule, {}).get("outcome", "nobody") != "nobody"
    ):
        return "nobody"
    if any(list(one) == list(ranks) for _, sets in result["truths"] for one in sets):
        return "right"
    return "wrong" if ranks else "nobody"


def sign_test(ours: int, theirs: int) -> float:
    """McNemar's exact test: how likely so uneven a split of the runs on which the two differ is
    by chance.
    """
    total, fewer = ours + theirs, min(ours, theirs)
    return (
        min(1.0, 2 * sum(math.comb(total, hits) for hits in range(fewer + 1)) / 2**total)
        if total
        else 1.0
    )
