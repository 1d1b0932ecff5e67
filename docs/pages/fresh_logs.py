"""The part of docs/accuracy.md about logs that nobody here wrote (tests/gallery/logs/fresh/)."""

from __future__ import annotations

from tests.gallery.logs import fresh

INTRO = """## Logs out of public threads, judged once

Somebody who knew neither the rules nor the gallery collected real logs out of public threads (at most two of one project), as their
reporters pasted them, and labelled them by what the thread found out. `trainprobe explain` judged each batch once, before anything was
mended for it. These are the numbers to expect of a log that nobody here has seen; the ones of our own cases are further down.
Most are excerpts of a few lines. Sources and labels are in `tests/gallery/logs/fresh/`, with the texts rendered anew: what software prints stays, names, paths and times are others.
Where a thread ended without a cause, `unknown` is the label, and an answer that leaves the cause open is right; "cause known" counts the others alone.
On 27 **whole logs** (3 to 60 kB, as training repositories keep them; collected and labelled blind from their text, judged once, not kept here), `explain` did worse: right in first place 14 of 23
(crashes 8 of 14, hangs 6 of 9), among three 19, verdict 23 of 23, none of 4 healthy ones blamed, but **6 of the 19 answers given with 80 % or more were wrong** (calibration error 0.303). Nothing was mended for them yet.

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
