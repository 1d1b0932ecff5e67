"""docs/predictions.md, from the results over invented measurements
(tests/unit/scaling/results.json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainprobe.scaling import ANNOUNCED, ANNOUNCED_FAR, FAR, IN_WORDS

RESULTS = Path(__file__).resolve().parents[2] / "tests" / "unit" / "scaling" / "results.json"
INTRO = """# How good the predictions are

From the sizes that were tried, `trainprobe diagnose` predicts time, memory, descriptors and processes at the full size, each with an interval
that should hold the value in 90 of 100 cases, and says which limit will be reached.

## How it is done

- Six laws are fitted at once: {laws}. Each but the first and the last also with an offset.
- Noise is taken as a factor. How well a law foretells each point from the smaller ones is its weight; none is chosen and then believed, but all are mixed.
  So an interval holds the noise of a measurement, the doubt about the numbers of a law, and the doubt about which law it is.
- One point of a set may be wrong (a cold cache, a busy neighbour).
- A size that did not end in its time is a lower bound. A law counts as much as it makes that bound likely; a bound that all laws together give less
  than 2 % is no matter of growth, and is left out.
- A steep law of times below one second announces nothing.
- A limit is announced where it is passed with a probability of {announced:.0%} or more; beyond {far:g} times the largest measured size, {announced_far:.0%}.
- Fewer than three sizes, or a largest that is less than four times the smallest, give no prediction, and the report says so.

## Over measurements of known law

{sets} invented sets: three to eight sizes over one to four decades, some measured twice, with noise of 5 to 15 %; asked for at 30 times the largest size.
The constants of the fit were found on other seeds than these. *Inside* is the share of true values within the interval, *measured* that of one more noisy
measurement there. A limit lies anywhere between the largest measured value and the true one, or up to 30 times above it. Those within a quarter of the truth
({close} of them) are left out of *announced* and *falsely*, since the noise alone decides them; with them it is {announced_all} and {falsely_all}.

"""
APART = """
## What no fit can foretell

Not in the numbers above: what the measured sizes do not show. A jump beyond the largest size, of what is no limit that the tool knows, and a square that is
still smaller than the noise at the largest size (5 to 30 % of the value, at 5 to 15 % noise). The cure for both is a larger size: `--rows` with one more.

"""
HEAD = (
    "| law | sets | inside | measured | median error | median width | limits hit | announced | not"
    " hit | falsely |\n|---|---|---|---|---|---|---|---|---|---|\n"
)


def pages() -> Iterator[tuple[str, str]]:
    """Give the page."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    whole = found["all"]
    intro = INTRO.format(
        laws=", ".join(IN_WORDS),
        announced=ANNOUNCED,
        announced_far=ANNOUNCED_FAR,
        far=FAR,
        sets=whole["sets"],
        close=whole["close"],
        announced_all=_percent(whole["announced_all"]),
        falsely_all=_percent(whole["falsely_all"]),
    )
    rows = (
        HEAD
        + _row("**all**", whole)
        + "".join(_row(law, one) for law, one in found["by_law"].items())
    )
    sizes = (
        "\nBy the number of sizes:\n\n"
        + HEAD.replace("| law |", "| sizes |")
        + "".join(_row(count, one) for count, one in found["by_sizes"].items())
    )
    yield (
        "predictions.md",
        intro
        + rows
        + sizes
        + APART
        + HEAD
        + "".join(_row(law, one) for law, one in found["apart"].items()),
    )


def _row(name: str, one: dict[str, Any]) -> str:
    shares = [_percent(one[key]) for key in ("inside", "inside_seen", "median_error")]
    cells = [
        name,
        one["sets"],
        *shares,
        f"{one['median_width']:.1f} times",
        one["hits"],
        _percent(one["announced"]),
        one["no_hits"],
        _percent(one["falsely"]),
    ]
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"
