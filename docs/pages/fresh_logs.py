"""The part of docs/accuracy.md about logs that nobody here wrote (tests/gallery/logs/fresh/)."""

from __future__ import annotations

from tests.gallery.logs import fresh

INTRO = """## Logs out of public threads, judged once

Somebody who knew neither the rules nor the gallery collected real logs out of public threads (at most two of one project), as their
reporters pasted them, and labelled them by what the thread found out. `trainprobe explain` judged each batch once, before anything was
mended for it. These are the numbers to expect of a log that nobody here has seen; the ones of our own cases are further down.
Most are excerpts of a few lines. Sources and labels are in `tests/gallery/logs/fresh/`, with the texts rendered anew: what software prints stays, names, paths and times are others.
Where a thread ended without a cause, `unknown` is the label, and an answer that leaves the cause open is right; "cause known" counts the others alone.
**Whole logs**, as training repositories keep them, were collected and labelled blind from their text, judged once, and are not kept here. On the first 27 (3 to 60 kB) `explain` was right in first place in 14 of 23
(crashes 8 of 14, hangs 6 of 9), among three in 19, with the verdict in 23; none of 4 healthy ones was blamed, but 6 of the 19 answers given with 80 % or more were wrong (calibration error 0.303).
On the next 43 (1 to 130 kB; after mends in general for the first) it was right in 22 of 35 (crashes 12 of 17, hangs 10 of 18), among three in 26, with the verdict in 33; 1 of the 19 answers given with 80 % or more was wrong (0.089), but **five of 8 healthy ones were blamed**: for what is said behind a good end, or beside it.
Four of these five are not blamed today, which is no measure.

| batch | right in first place | crashes | hangs | cause known | among three | verdict | healthy ones blamed | wrong with 80 % or more | calibration error |
|---|---|---|---|---|---|---|---|---|---|
"""


def section() -> str:
    """Return the section, "" before a batch was judged."""
    lines = [
        f"| {batch} | " + " | ".join(map(str, fresh.summary(rows).values())) + " |"
        for batch in fresh.batches()
        for rows in [fresh.results_of(batch)]
        if rows
    ]
    return INTRO + "\n".join(lines) + "\n" if lines else ""
