"""The part of docs/accuracy.md about families of causes that were switched off
(tests/gallery/live/families.json).
"""

from __future__ import annotations

import json
from typing import Any

from tests.gallery.live.families import FAMILIES, KEPT_AT, summary

INTRO = """## With the family's own causes switched off

Each family of mechanism in turn loses its causes, and the recorded jobs of that family are judged without them: this is what the tool
makes of a fault that its catalogue does not know. The verdict and the ranks should stay right, and the answer should be a general one or
`unknown`, not a special one of another class. *Class* is right where the first cause is `unknown` or of the class of the true one
(one rank does not get on, the calls part, a rank is gone, slow, network). *Named* is a cause of another class that was put first by name.
The evidence is that of the gallery, so the looks were chosen by people who knew these faults; only the causes are gone.
`python -m tests.gallery.live.families` makes the table.

| family | runs | verdict right | ranks right | class right | named wrongly |
|---|---|---|---|---|---|
"""


def section() -> str:
    """Return the section, "" before there are results."""
    if not KEPT_AT.exists():
        return ""
    rows: list[dict[str, Any]] = json.loads(KEPT_AT.read_text(encoding="utf-8"))
    parts = [(name, [row for row in rows if row["family"] == name]) for name in FAMILIES]
    lines = [_line(name, own) for name, own in (*parts, ("all", rows)) if own]
    share = summary(rows)
    return (
        f"{INTRO}{chr(10).join(lines)}\n\nThe confidence of the widest class that a report states is"
        f" {share['calibration error']:.3f} off (expected calibration error); the\nconfidence of the"
        f" causes that are named here, as right where the true one is of their class,"
        f" {share['of named causes']:.3f}.\n"
    )


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    share = summary(rows)
    cells = (
        f"{100 * share[key]:.0f} %" for key in ("verdict", "ranks", "class", "wrong and named")
    )
    return f"| {name} | {len(rows)} | " + " | ".join(cells) + " |"
