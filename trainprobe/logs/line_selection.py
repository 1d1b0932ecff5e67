"""Selects the lines to keep of one attempt in one file: bounded, the informative ones first."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainprobe.logs.lines import Line
from trainprobe.logs.literal_search import BEGINNINGS
from trainprobe.signatures import LINE_CAP, Signature

HEAD = 60
TAIL = 200
PROGRESS = 30
CONTEXT = 3
FIRST_HITS = 40
LAST_HITS = 10
FIRST_BLOCKS = 50
LAST_BLOCKS = 14
BLOCK_LINES = 400
QUIET_LINES = 10
FAILURE_LINES = 120  # of tracebacks and fatal lines of every file, however many files there are
# The lines with the highest level go first when a file has more than its share. Within a kind the
# level grows with every further line.
FATAL, BLOCK, ENDING, HIT, ECHO, BEGINNING, AROUND = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0
_BEGINS = re.compile("|".join(re.escape(text) for text in BEGINNINGS))
# Lines of tracebacks, of stacks of C++ and faulthandler, of exception groups and of torchrun's
# table.
_OF_BLOCK = re.compile(
    r"\s|[|+#]|File \"|frame #|Thread |Current thread|Traceback|During handling|The above"
    r" exception|Original Traceback|[\w.]{1,200}(?:Error|Exception|Interrupt|Exit|Warning)\b"
    r"|[=*-]{5}|Root Cause|Failures|Other Failures|\[\d{1,5}\]:|Exception|<|Extension"
    r" modules|Caught |CUDA |Last error|Compile with|For debugging|$"
)


@dataclass
class _Block:
    place: int
    lines: int = 0
    quiet: int = 0
    silent_since: int = 0
    rows: list[Line] = field(default_factory=list)


class LineSelection:
    """The lines kept of one attempt, at most `cap`; `begins` and `last` number its first line and
    the last one that was read.
    """

    def __init__(self, number: int, cap: int, begins: int) -> None:
        self.number, self.cap, self.begins, self.last = number, cap, begins, begins
        self._kept: dict[tuple[int, int], tuple[float, Line]] = {}
        self._heads: dict[int | None, int] = defaultdict(int)
        self._hits: dict[tuple[str, int | None], int] = defaultdict(int)
        self._last_hits: dict[tuple[str, int | None], deque[list[Line]]] = {}
        self._blocks: dict[int | None, int] = defaultdict(int)
        self._last_blocks: dict[int | None, deque[list[Line]]] = {}
        self._open: dict[int | None, _Block] = {}
        self._recent: deque[Line] = deque(maxlen=CONTEXT)
        self._after = 0
        self._after_level = AROUND
        self._ring: list[Line] | None = None

    @property
    def ranks(self) -> set[int | None]:
        return set(self._heads)

    @property
    def wants_more(self) -> bool:
        """Whether the next line belongs to something that is kept."""
        return self._after > 0 or bool(self._open)

    def add(self, line: Line, signatures: list[Signature]) -> None:
        """Look at the next line; `signatures` are those of which it holds a literal text."""
        self.last = max(self.last, line.number)
        seen = self._heads[line.rank] = self._heads[line.rank] + 1
        if seen <= HEAD:
            self.keep(line, BEGINNING + seen / 20)
        if self._after > 0:
            self._after -= 1
            if self._ring is not None:
                self._ring.append(line)
            else:
                self.keep(line, self._after_level)
        for signature in signatures:
            if _matches(signature, line.text):
                self._hit(signature, line)
        self._in_block(line)
        self._recent.append(line)

    def keep(self, line: Line, level: float) -> None:
        """Keep a line; the lower its level, the longer."""
        key = (line.number, line.state)
        known = self._kept.get(key)
        if known is None:
            self._kept[key] = (level, line)
            if len(self._kept) > 4 * self.cap:
                self._prune(2 * self.cap)
        elif level < known[0]:
            self._kept[key] = (level, known[1])

    def rows(self) -> list[Line]:
        """Return what is kept, in the order of the lines."""
        for ring in self._last_hits.values():
            for place, lines in enumerate(reversed(ring)):
                for line in lines:
                    self.keep(line, HIT + place / 4)
        for rank in list(self._open):
            self._close(rank)
        for blocks in self._last_blocks.values():
            for place, lines in enumerate(reversed(blocks)):
                for line in lines:
                    self.keep(line, BLOCK + place / 4)
        self._prune(self.cap)
        return [entry[1] for _, entry in sorted(self._kept.items(), key=lambda item: item[0])]

    def renumber(self, numbers: Sequence[int]) -> None:
        """Give every line its number in the file, since wrapped lines were joined before."""
        for line in {id(line): line for _, line in self._kept.values()}.values():
            line.number = numbers[min(line.number, len(numbers)) - 1]
        self._kept = {
            (line.number, line.state): (level, line) for level, line in self._kept.values()
        }

    def _prune(self, most: int) -> None:
        """Keep the best `most` lines. Where that is few, tracebacks and fatal lines have room of
        their own, and at least a third is left to the others.
        """
        if len(self._kept) <= most:
            return
        ranked = sorted(self._kept.items(), key=lambda item: item[1][0])
        if most < 4 * FAILURE_LINES:
            failures = sum(item[1][0] < ENDING for item in ranked)
            kept = min(failures, max(most, FAILURE_LINES))
            ranked = ranked[:kept] + ranked[failures:][: max(most - kept, most // 3)]
        else:
            ranked = ranked[:most]
        self._kept = dict(ranked)

    def _hit(self, signature: Signature, line: Line) -> None:
        key = (signature.id, line.rank)
        count = self._hits[key] = self._hits[key] + 1
        base = FATAL if signature.means == "fatal" else ECHO if signature.echo else HIT
        if count <= FIRST_HITS:
            self.keep(line, base + count / 10)
            level = AROUND + count / 10
            for near in self._recent:
                self.keep(near, level)
            self._ring = None
            self._after_level = level
        else:
            ring = self._last_hits.setdefault(key, deque(maxlen=LAST_HITS))
            self._ring = [*self._recent, line]
            ring.append(self._ring)
        self._after = CONTEXT

    def _in_block(self, line: Line) -> None:
        block = self._open.get(line.rank)
        begins = _BEGINS.search(line.text) is not None
        if block is None:
            if begins:
                self._blocks[line.rank] += 1
                block = self._open[line.rank] = _Block(self._blocks[line.rank])
                for near in self._recent:
                    if near.rank == line.rank:
                        self._of_block(block, near)
        elif begins or _OF_BLOCK.match(line.text):
            block.quiet = 0
        else:
            block.quiet += 1
        if block is not None:
            self._of_block(block, line)
            if block.quiet >= QUIET_LINES or block.lines >= BLOCK_LINES:
                self._close(line.rank)
        for rank, other in list(self._open.items()):
            other.silent_since = 0 if other is block else other.silent_since + 1
            if other.silent_since > BLOCK_LINES:
                self._close(rank)

    def _of_block(self, block: _Block, line: Line) -> None:
        block.lines += 1
        if block.place <= FIRST_BLOCKS:
            self.keep(
                line, BLOCK + block.place / 20 + (2.0 if block.lines > BLOCK_LINES // 4 else 0.0)
            )
        else:
            block.rows.append(line)

    def _close(self, rank: int | None) -> None:
        block = self._open.pop(rank)
        if block.rows:
            self._last_blocks.setdefault(rank, deque(maxlen=LAST_BLOCKS)).append(block.rows)


def _matches(signature: Signature, text: str) -> bool:
    at = next((place for literal in signature.has if (place := text.find(literal)) >= 0), -1)
    if at < 0:
        return False
    begin = max(0, at - LINE_CAP // 2)
    return signature.regex.search(text[begin : begin + LINE_CAP]) is not None
