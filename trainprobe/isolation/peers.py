"""Slow in comparison with peers: no constant says what a link must reach, what the other pairs
reach at the same time does.

A pair is slow beyond the median of the others by the larger of a share and three times their median
absolute deviation. The share is what the traffic of an arm
can tell at all: 5 % for collectives of a GPU (SuperBench's tolerance), more where Python moves the
bytes on a host that does other work beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from trainprobe.isolation.trials import Try

# with fewer others their spread says nothing: then the best of them is the measure, and the
# difference has to be gross
FEW = 4
DEVIATIONS = 3.0


@dataclass(frozen=True)
class Tolerance:
    """`share` beyond the others' median, `gross` where they are few, and `floor` in the
    measure's own unit, below which nobody would feel it.
    """

    share: float
    gross: float
    floor: float


# Costs: the larger, the slower. Throughput is turned into seconds for a gigabit.
TOLERANCES: Mapping[tuple[str, str], Tolerance] = {
    ("tcp", "rtt_ms"): Tolerance(1.0, 9.0, 5.0),
    ("tcp", "mbps"): Tolerance(4.0, 6.0, 1.0),
    ("gloo", "took_ms"): Tolerance(
        4.0, 9.0, 200.0
    ),  # 4 MiB: with both processors at other work healthy pairs took 5 to 60 ms
    ("nccl", "took_ms"): Tolerance(0.05, 1.0, 0.05),
}
HOW = {"rtt_ms": "delay", "mbps": "slow", "took_ms": "slow"}


def compared(tries: Sequence[Try]) -> list[Try]:
    """Return the tries; passed pairs that are slow beside their peers of the same arm and phase
    have the outcome slow.
    """
    apart: dict[tuple[str, str, int | None], list[int]] = {}
    for place, one in enumerate(tries):
        if one.outcome in ("passed", "slow") and len(one.members) == 2:
            apart.setdefault((one.arm, one.phase, one.rail), []).append(place)
    found = list(tries)
    for (arm, _, _), places in apart.items():
        for name in ("rtt_ms", "mbps", "took_ms"):
            rule = TOLERANCES.get((arm, name))
            if rule is not None:
                for place in _beyond(
                    [
                        (place, tries[place])
                        for place in places
                        if tries[place].measures.get(name, 0) > 0
                    ],
                    name,
                    rule,
                ):
                    one = found[place]
                    found[place] = replace(
                        one, outcome="slow", how=one.how or HOW[name], says=_said(one, name)
                    )
    return found


def _beyond(values: list[tuple[int, Try]], name: str, rule: Tolerance) -> list[int]:
    costs = {place: _cost(name, one.measures[name]) for place, one in values}
    ordered = sorted((cost, place) for place, cost in costs.items())
    suspicious = [
        place
        for cost, place in ordered
        if cost - ordered[0][0] > max(rule.floor, rule.share * ordered[0][0])
    ]
    if not suspicious:  # all are near the best: the common case, and cheap for a thousand pairs
        return []
    members = {place: set(one.members) for place, one in values}
    return [
        place for place in suspicious if _slow(costs[place], _others(place, costs, members), rule)
    ]


def _others(place: int, costs: Mapping[int, float], members: Mapping[int, set[str]]) -> list[float]:
    """The costs of groups that share no node with this one; where there is none, of those that
    are not the same group.
    """
    apart = [cost for other, cost in costs.items() if not members[other] & members[place]]
    return apart or [cost for other, cost in costs.items() if members[other] != members[place]]


def _slow(cost: float, others: Sequence[float], rule: Tolerance) -> bool:
    if not others:
        return False
    if len(others) < FEW:
        usual, beyond = min(others), rule.gross * min(others)
    else:
        usual = median(others)
        beyond = max(rule.share * usual, DEVIATIONS * median(abs(one - usual) for one in others))
    return cost - usual > max(beyond, rule.floor)


def _cost(name: str, value: float) -> float:
    return 1000.0 / value if name == "mbps" else value


def _said(one: Try, name: str) -> str:
    unit = {"rtt_ms": "ms round trip", "mbps": "Mbit/s", "took_ms": "ms"}[name]
    return f"{' and '.join(one.members)}: {one.measures[name]:.3g} {unit}, unlike the other pairs"
