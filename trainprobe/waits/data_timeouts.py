"""A size of the user's data that did not end in its time: slow as the smaller ones let expect,
or at a stop?
"""

from __future__ import annotations

from trainprobe.facts import Facts, Measured, ProbeFailure
from trainprobe.scaling import EXCLUDED, Point, TooFewError, fit, interval, share_above
from trainprobe.scaling.wording import amount, number
from trainprobe.waits.measured_series import DATA, TIME, by_setting

TIMES = ("build_s", TIME)


def wait_expected(facts: Facts, cell: str) -> bool | None:
    """Return whether the smaller sizes let expect that the last one took so long; None where it
    ended, or too few tell.
    """
    found = _bound(facts, cell)
    return found[1] if found is not None else None


def stop_says(facts: Facts, cell: str) -> str:
    """How far the wait is beyond what the smaller sizes let expect; empty where it is not."""
    found = _bound(facts, cell)
    if found is None or found[1]:
        return ""
    bound, _, expected_s = found
    return (
        f"{number(bound.size)} rows should take {amount(expected_s, 's')} by the smaller sizes, and"
        f" did not end in {amount(bound.value, 's')}"
    )


def _bound(facts: Facts, cell: str) -> tuple[Point, bool, float] | None:
    """The size that did not end, whether its wait was to be expected, and the seconds that were."""
    own = facts.of(Measured, cell=cell)
    stood = any(
        one.details.get("kind") == "stood" and one.probe == DATA
        for one in facts.of(ProbeFailure, cell=cell)
    )
    for series in (one for name in TIMES if stood for one in by_setting(own, name)):
        for bound in series.at_least:
            try:
                law = fit(series.points)
            except TooFewError:
                continue
            return (
                bound,
                share_above(law, bound.size, bound.value) >= EXCLUDED,
                interval(law, bound.size).value,
            )
    return None
