"""What the settings ask of a measured number: a rung that passed but measured too much or too
little has failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainprobe.ladder.outcome import Result

SOURCE = "trainprobe.yaml"


@dataclass(frozen=True)
class Thresholds:
    """Limits by the name of the measure, `init_s`, or of one rung's alone,
    `gloo_control.init_s`.
    """

    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)

    def of(self, probe: str, name: str) -> tuple[float | None, float | None]:
        """Return (least, most) for a measure; the rung's own limit comes before that of the name
        alone.
        """
        own = f"{probe}.{name}"
        return self.at_least.get(own, self.at_least.get(name)), self.at_most.get(
            own, self.at_most.get(name)
        )


def held_against(result: Result, probe: str, limits: Thresholds) -> Result:
    """Return `result` with the limits in its measures; failed, with the first number that is
    beyond one, where it had passed.
    """
    broken: list[str] = []
    ranks: set[int] = set()
    rows = [_row(row, probe, limits, broken, ranks) for row in result.more.get("measures", [])]
    if not rows:
        return result
    held = replace(result, more={**result.more, "measures": rows})
    if not broken or result.outcome != "passed":
        return held
    more = f" ({len(broken) - 1} more)" if len(broken) > 1 else ""
    return replace(held, outcome="failed", says=broken[0] + more, ranks=tuple(sorted(ranks)))


def _row(
    row: Mapping[str, Any], probe: str, limits: Thresholds, broken: list[str], ranks: set[int]
) -> Mapping[str, Any]:
    least, most = limits.of(probe, row["name"])
    if least is None and most is None:
        return row
    value, unit = row["value"], f" {row['unit']}".rstrip()
    low, high = least is not None and value < least, most is not None and value > most
    if low or high:
        whose = f" on {row['who']}" if row["who"] else ""
        word, limit = ("less", least) if low else ("more", most)
        broken.append(
            f"the measure {row['name']} is {value:g}{unit}{whose}, {word} than the {limit:g}{unit}"
            f" that {SOURCE} asks for"
        )
        ranks.update(int(number) for number in re.findall(r"rank (\d{1,6})\b", row["who"]))
    return {**row, "threshold": least if low or most is None else most, "source": SOURCE}
