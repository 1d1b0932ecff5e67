"""The part of docs/accuracy.md about live jobs that nobody here wrote (tests/gallery/live/blind/)."""

from __future__ import annotations

from tests.gallery.live import blind

INTRO = """## Jobs that nobody here knew, judged once

Somebody who knew neither the rules nor the gallery wrote training jobs out of public threads, most of them broken, some healthy with nasty
pauses, and noted the truth first. `trainprobe attach` looked at each once, with the rules of that day. These are the numbers to expect of
a job that nobody here has seen; those of our own gallery are further down. The ranks must be exactly those of the label, or (from round 9 on) another set that its author held equally right beforehand; all of them are the same as no particular one.
Each round was judged after the misses of the round before had been mended, and before its own were.
Of round 9 four slow jobs were looked at by a tool whose modules had not been compiled beforehand, which costs it seconds of its time for a
look; one of its jobs met a program of its author's that had been left behind at its store's port, and was started once more.
In round 11 one job (an RPC server whose threads all wait) was woken by the first look itself, so that it seemed to have waited for half a second.
The shards of one of its jobs, 8 MB, are not in the repository.
The jobs of rounds 13 to 20 were written on a crowded machine (those of round 21 each ran once in their final form, for 35 to 240 s): of some broken ones (eight in the first two rounds) and most healthy ones nobody had seen the final form run before it was judged.
Of one job of round 15 (a straggler) its author doubted that it is slow on a free machine. Below the shell of one job of round 16 ran two jobs: attach named both and asked for one, and was given the first.
Three jobs of round 19 did not start at first, since their libraries had been removed from the environment by mistake, and were started once more.
Round 20 is half a round, since its authors had no more time; its looks at three jobs at once shared two cores with tests.
Of round 21 one author had time for six jobs, all broken. Two jobs ran side by side while others were read and tested.
Each job of rounds 22 and 23 was seen in its final form for 30 to 190 s by its author. Two ran side by side, with light work beside them; the last of round 23 alone.
Round 24 is half a round; those of its jobs ran for 45 to 150 s before, and what it missed was mended before round 25.
The jobs of round 25 ran once each in their final form (36 to 115 s); two at a time were judged, with light work beside them. Of round 26 one author had time for three jobs, seen for 25 to 30 s.
The jobs of round 27 ran for 40 to 90 s in their final form; a third were judged one by one while others were written and tested, the others two at a time with light work beside them.
Those of round 28 ran for 30 to 100 s before, and were judged two at a time, the first of them while others were tested.

| round | cause and ranks first | cause | ranks | verdict | broken, called healthy | healthy, blamed | calibration error |
|---|---|---|---|---|---|---|---|
"""
MISSES = """
What was not right:

| job | truth | said | verdict |
|---|---|---|---|
"""


def section() -> str:
    """Return the section, "" before a round was judged."""
    lines, misses, gone = [], [], 0
    for name in blind.rounds():
        truths = {row["job"]: row for row in blind.answers_of(name)}
        rows = [blind.judged(truths[row["job"]], row) for row in blind.results_of(name)]
        if not rows:
            continue
        gone += len(blind.ended_before(rows))
        lines.append(f"| {name} | " + " | ".join(map(str, blind.summary(rows).values())) + " |")
        for row in rows:
            truth = truths[row["job"]]
            if row in blind.ended_before(rows):
                continue
            if row["kind"] == "broken" and not (row["cause"] and row["ranks"]):
                ranks = next(iter(row["causes"]), blind.NOTHING)["ranks"]
                misses.append(
                    f"| {truth['class']} | `{row['truth']}` {truth['ranks']} | `{row['answer']}`"
                    f" {ranks} {row['confidence']:.2f} | {row['verdict']} |"
                )
    ended = (
        f"\nJobs that had ended by themselves before the look do not count: {gone}.\n"
        if gone
        else ""
    )
    table = "\n".join(lines) + "\n" + ended
    return INTRO + table + MISSES + "\n".join(misses) + "\n" if lines else ""
