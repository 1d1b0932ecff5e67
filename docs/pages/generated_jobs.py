"""The part of docs/accuracy.md about jobs drawn by a seed (tests/gallery/live/generated/)."""

from __future__ import annotations

from tests.gallery.live.generated import scores

INTRO = """## Jobs that nobody chose

A generator draws training jobs by a seed: a framework, a mechanism of failure, the place in the program, the rank, the launcher and the
world size, with other names, files and structure each time; a quarter of them are healthy with nasty pauses. It knows nothing of
trainprobe's rules, and its labels are ids of the catalogue. Each job was started, the fault was seen to be in place without trainprobe's
help, and `trainprobe attach` looked at it once. The seeds of this table were judged once; those used for development are others.
The mechanisms were thought of by people who know the catalogue, so this measures how well an answer carries over to other programs,
places and launchers, not how well it carries over to faults that nobody thought of.
"""


def section() -> str:
    """Return the section, "" before reporting seeds were judged."""
    rows = [row for row in scores.results() if "skipped" not in row]
    if not rows:
        return ""
    short = [
        f"| {name} | {share} | {interval} |" for name, share, interval in scores.in_short(rows)
    ]
    parts = [
        INTRO,
        "| | jobs | interval (Wilson, 95 %) |\n|---|---|---|\n" + "\n".join(short),
        "By mechanism:\n\n" + scores.by(rows, "mechanism"),
        "By framework:\n\n" + scores.by(rows, "framework"),
    ]
    misses = [
        f"| {row['seed']} | {row['truth']['mechanism']}, {row['truth']['framework']}, {row['truth']['place']}"
        f" | `{row['truth']['cause']}` {list(map(list, row['truth']['ranks']))}"
        f" | `{row['answer']}` {row['answered_ranks']} {row['confidence']:.2f} | {row['verdict']} |"
        for row in scores.broken(rows)
        if not scores.right(row)
    ] + [
        f"| {row['seed']} | {row['truth']['mechanism']}, {row['truth']['framework']} | healthy"
        f" | `{row['answer']}` {row['answered_ranks']} {row['confidence']:.2f} | {row['verdict']} |"
        for row in scores.healthy(rows)
        if scores.blamed(row)
    ]
    if misses:
        head = "What was not right:\n\n| seed | job | truth | said | verdict |\n|---|---|---|---|---|\n"
        parts.append(head + "\n".join(misses))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
