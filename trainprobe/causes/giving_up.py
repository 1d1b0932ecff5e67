"""Of a log: a rank that says that it gives up, and leaves without an error of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import ranks_say, short
from trainprobe.facts import LogJob, Output
from trainprobe.model.diagnosis import Weighing

_GIVES_UP = re.compile(r"(?i)\b(?:giving up|aborting|exiting|quitting|bailing out|(?:cannot|can't) continue|nothing (?:more|left) to do|stopping here)\b")
LAST_LINES = 3


def gave_up(scene: Scene) -> Iterator[Weighing]:
    """Of a log: the last words of the rank that alone told of no failure are that it leaves, and the others lost their peer."""
    echoes = scene.exceptions(scene.others, echo=True)
    if scene.group.how != "not-visible" or not echoes or scene.facts.one(LogJob, cell=scene.cell) is None:
        return
    outputs = [output for rank in (*scene.group.ranks, None) for output in scene.facts.of(Output, cell=scene.cell, rank=rank)]
    for output in outputs:
        line = next((line for line in output.tail.splitlines()[-LAST_LINES:] if _GIVES_UP.search(line)), None)
        if line is not None:
            yield weighing(10, "suspects-log", f"The last that it said is «{short(line, 100)}»", output)
            yield weighing(6, "other-stacks", f"{ranks_say([error.rank or 0 for error in echoes])} broke afterwards because a peer was gone", *echoes)
            return
