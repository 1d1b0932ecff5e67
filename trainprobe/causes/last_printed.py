"""What a rank of a live job printed last, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene
from trainprobe.facts import Output
from trainprobe.facts.steps import steps_printed

# How programs say that they have come to their end, and want no more.
_AT_ITS_END = re.compile(
    r"(?i)\b(?:finish(?:ed|ing)?|done|complet(?:e|ed|ing)|early[ _-]?stop\w*|stopp(?:ed|ing)"
    r"|end(?:ed|ing)?|exit(?:ed|ing)?|quit(?:ting)?|leaving|bye|nothing (?:more|left|else)?\s?to do"
    r"|no more \w+|giving up|final|total|result\w*|best \w+|saved|converged|all epochs|reached)\b"
)
_LAST_LINES = 3
# The same without words that a program also says in its midst, for a stream of several ranks.
_LEAVES = re.compile(
    r"(?i)\bearly[ _-]?stopp\w*|\b(?:giving up|exiting|quitting|leaving|converged"
    r"|nothing (?:more |left )?to do|no more (?:data|batches|samples|work)"
    r"|finish(?:ed|ing) training|training (?:is )?(?:done|over|finished|completed?))\b"
)
_LAST_OF_ALL = 60


@dataclass(frozen=True)
class LastPrinted:
    """`line` is empty where the rank printed nothing at all. `ends`: the line, or one of the two
    before it, says that the program has come to its end; `steps`: it tells of a step.
    """

    output: Output
    line: str = ""
    ends: str = ""
    steps: bool = False

    @property
    def says(self) -> str:
        """`last printed at 14:03:11 UTC, 11 min ago: `step 512 loss 0.3``, behind a rank."""
        at, silent_s = self.output.last_at, self.output.silent_s
        if not self.line:
            return "has printed nothing so far"
        when = f" at {datetime.fromtimestamp(at, timezone.utc):%H:%M:%S} UTC" if at else ""
        ago = f", {_ago(silent_s)}" if at and silent_s is not None else ""
        return f"last printed{when}{ago}: `{short(self.line.replace('`', chr(39)), 100)}`"


def last_printed(scene: Scene, rank: int | None) -> LastPrinted | None:
    """Of a live job; None where nothing of this rank could be read. Of several files the one that
    was written to last counts.
    """
    if scene.live is None:
        return None
    outputs = [output for output in scene.of(Output, rank=rank) if output.stream != "log"]
    outputs = outputs or list(scene.of(Output, rank=rank))
    spoke = [output for output in outputs if output.tail.strip()] or outputs
    if not spoke:
        return None
    output = max(spoke, key=lambda one: one.last_at or 0.0)
    lines = [line.strip() for line in output.tail.splitlines() if line.strip()]
    if not lines:
        return LastPrinted(output)
    ends = next(
        (
            line
            for line in lines[: -_LAST_LINES - 1 : -1]
            if _AT_ITS_END.search(line) and steps_printed(line) is None
        ),
        "",
    )
    return LastPrinted(output, lines[-1], ends, steps_printed(lines[-1]) is not None)


def said_by_one(scene: Scene) -> LastPrinted | None:
    """The line of a common stream, near its end, in which one rank, which is not named, says that
    it leaves.
    """
    common = last_printed(scene, None)
    if common is None:
        return None
    lines = [line.strip() for line in common.output.tail.splitlines() if line.strip()]
    found = [line for line in lines[-_LAST_OF_ALL:] if _LEAVES.search(line)]
    return replace(common, ends=found[0]) if found and lines.count(found[0]) == 1 else None


def printed_sentence(scene: Scene, ranks: Sequence[int]) -> str:
    """When the suspect printed its last line; of a common stream, when anybody did."""
    return next(_sentences(scene, ranks), "")


def _sentences(scene: Scene, ranks: Sequence[int]) -> Iterator[str]:
    told = [(rank, found) for rank in ranks for found in [last_printed(scene, rank)] if found]
    if told:
        rank, found = max(told, key=lambda one: one[1].output.last_at or 0.0)
        yield f"Rank {rank} {found.says}."
    common = last_printed(scene, None)
    if common is not None and common.line and common.output.last_at:
        yield f"The job {common.says}."


def _ago(silent_s: float) -> str:
    if silent_s < 120:
        return f"{silent_s:.0f} s ago"
    return f"{silent_s / 60:.0f} min ago" if silent_s < 7200 else f"{silent_s / 3600:.0f} h ago"
