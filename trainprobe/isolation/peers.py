"""Slow in comparison with peers: the other pairs, measured at the same time, set the standard, not
a constant.

A pair is slow when it exceeds the median of the others by more than a share and by more than three
times their median absolute deviation. The share is the resolution of an arm's traffic: 5 % for
collectives of a GPU (SuperBench's tolerance), more where Python moves the bytes on a busy host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from trainprobe.isolation.trials import Try

# The spread of fewer others means nothing: the best one is then the standard, and the difference
# has to be gross.
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
    # 4 MiB: with both processors busy, healthy pairs took 5 to 60 ms.
    ("gloo", "took_ms"): Tolerance(4.0, 9.0, 200.0),
    ("nccl", "took_ms"): Tolerance(0.05, 1.0, 0.05),
}
HOW = {"rtt_ms": "delay", "mbps": "slow", "took_ms": "slow"}


def compared(tries: Sequence[Try]) -> list[Try]:
    """Return the tries; passed pairs that are slower than their peers of the same arm and phase get
    the outcome slow.
    """
    peers: dict[tuple[str, str, int | None], list[int]] = {}
    for place, trial in enumerate(tries):
        if trial.outcome in ("passed", "slow") and len(trial.members) == 2:
            peers.setdefault((trial.arm, trial.phase, trial.rail), []).append(place)
    found = list(tries)
    for (arm, _, _), places in peers.items():
        for name, how in HOW.items():
            rule = TOLERANCES.get((arm, name))
            if rule is None:
                continue
            values = [(at, tries[at]) for at in places if tries[at].measures.get(name, 0) > 0]
            for place in _beyond(values, name, rule):
                trial = found[place]
                says = _sentence(trial, name)
                found[place] = replace(trial, outcome="slow", how=trial.how or how, says=says)
    return found


def _beyond(values: list[tuple[int, Try]], name: str, rule: Tolerance) -> list[int]:
    costs = {place: _cost(name, trial.measures[name]) for place, trial in values}
    ordered = sorted((cost, place) for place, cost in costs.items())
    suspicious = [
        place
        for cost, place in ordered
        if cost - ordered[0][0] > max(rule.floor, rule.share * ordered[0][0])
    ]
    if not suspicious:  # the common case, cheap for a thousand pairs
        return []
    members = {place: set(trial.members) for place, trial in values}
    return [
        place for place in suspicious if _slow(costs[place], _others(place, costs, members), rule)
    ]


def _others(place: int, costs: Mapping[int, float], members: Mapping[int, set[str]]) -> list[float]:
    """The costs of groups that share no node with this one; failing those, of all other groups."""
    apart = [cost for other, cost in costs.items() if not members[other] & members[place]]
    return apart or [cost for other, cost in costs.items() if members[other] != members[place]]


def _slow(cost: float, others: Sequence[float], rule: Tolerance) -> bool:
    if not others:
        return False
    if len(others) < FEW:
        usual, beyond = min(others), rule.gross * min(others)
    else:
        usual = median(others)
        beyond = max(
            rule.share * usual, DEVIATIONS * median(abs(other - usual) for other in others)
        )
    return cost - usual > max(beyond, rule.floor)


def _cost(name: str, value: float) -> float:
    return 1000.0 / value if name == "mbps" else value


def _sentence(trial: Try, name: str) -> str:
    value, pair = trial.measures[name], " and ".join(trial.members)
    unit = {"rtt_ms": "ms round trip", "mbps": "Mbit/s", "took_ms": "ms"}[name]
    return f"{pair}: {value:.3g} {unit}, unlike the other pairs"
