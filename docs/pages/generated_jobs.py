"""The part of docs/accuracy.md about jobs drawn by a seed (tests/gallery/live/generated/)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.gallery.live.generated import scores
from tests.gallery.live.generated.scores import Row

INTRO = """## Jobs that nobody chose

A generator draws training jobs by a seed: a framework, a mechanism of failure, the place in the program, the rank, the launcher and the
world size, with other names, files and structure each time; a quarter of them are healthy with nasty pauses. It knows nothing of
trainprobe's rules, and its labels are ids of the catalogue. Each job was started, the fault was seen to be in place without trainprobe's
help, and `trainprobe attach` looked at it once. The seeds of these tables were judged once; those used for development are others.
Misses of one set were mended before the next, of other seeds, was judged.
Set 1 was judged on two cores on which other programs ran.
In sets 1 to 5 some "healthy" jobs pause for their data, or for what rank 0 does alone, in so many of their steps that they do wait most of the time; an answer that says so counts as wrong.
From set 6 on each step has the time that an accelerator would take, and such pauses come once in half a minute.
Set 6 was judged at once, with the rules of one commit, two jobs side by side, while tests ran on the same two cores now and then: the healthy ones that it calls short of processors were.
The mechanisms were thought of by people who know the catalogue, so this measures how well an answer carries over to other programs,
places and launchers, not how well it carries over to faults that nobody thought of.
"""


SET = 1_000_000  # seeds of one set begin with the same number


def _sets(rows: Sequence[Row]) -> Iterator[str]:
    """Each set in short. A set was judged with what had been mended after the one before."""
    numbers = sorted({row["seed"] // SET for row in rows})
    for number in numbers:
        own = [row for row in rows if row["seed"] // SET == number]
        short = [
            f"| {name} | {share} | {interval} |" for name, share, interval in scores.in_short(own)
        ]
        head = f"Set {number}, {len(own)} jobs:\n\n| | jobs | interval (Wilson, 95 %) |\n|---|---|---|\n"
        yield head + "\n".join(short)


def section() -> str:
    """Return the section, "" before reporting seeds were judged."""
    rows = [row for row in scores.results() if "skipped" not in row]
    if not rows:
        return ""
    parts = [
        INTRO,
        *_sets(rows),
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
