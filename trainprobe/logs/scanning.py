"""Scans one file once, in bounded memory, and selects the lines to keep of each attempt.

A search finds the literal texts in pieces of megabytes; only the lines around the hits, and the
first and last lines, are read one by one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from functools import lru_cache

from trainprobe.logs.line_selection import BEGINNING, CONTEXT, ENDING, PROGRESS, TAIL, LineSelection
from trainprobe.logs.lines import SAMPLE_LINES, Line, LineReader
from trainprobe.logs.literal_search import LiteralSearch, signature_search
from trainprobe.logtext.attempts import Attempts
from trainprobe.logtext.stamps import Stamp
from trainprobe.logtext.steps import read_step
from trainprobe.signatures import Signature, all_signatures

WHOLE_LINES = 4000
WHOLE_BYTES = 8 * 2**20
LONGEST_LINE = 4 * 2**20
# Text that stays in memory after it was read: the lines before a hit, and the end of an attempt.
BEHIND_BYTES = 512 * 2**10
TAIL_LINES = 4000
LEAST_BACK = 200
PULSE_LINES = 40
# A text on more lines than this is read only where a piece of the file begins and ends. The limit
# is lower for a text that is no failure, and where few lines of a file may be kept.
COMMON = 5000
COMMON_SIGN = 1000
COMMON_EACH = 8
COMMON_TEXTS = 8


class FileScan:
    """Takes the pieces of a file by `feed`, then `finish`.

    `cap` bounds the lines kept of each attempt; a file of up to `whole` lines is kept whole.
    """

    def __init__(
        self, newest: float | None, *, cap: int = WHOLE_LINES, whole: int = WHOLE_LINES
    ) -> None:
        self.lines = 0
        self.cut_lines = 0
        self.kept: list[LineSelection] = []
        self.reader = LineReader(newest)
        self._cap, self._whole_lines = cap, whole
        self._search_engine: LiteralSearch = signature_search()
        self._texts = self._search_engine.texts
        self._attempts = Attempts()
        self._selection = LineSelection(0, cap, 1)
        self._whole: list[tuple[LineSelection, Line]] | None = []
        self._whole_bytes = 0
        self._buffer = b""
        self._at = 0  # where the first line that was not looked at begins in the buffer
        self._searched = 0
        self._hits: deque[tuple[int, int]] = deque()
        self._counts: dict[int, int] = defaultdict(int)
        self._common: frozenset[int] = frozenset()
        self._pulses: dict[int | None, deque[Line]] = {}
        self._learnt = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the file."""
        self._drop_read()
        self._buffer += piece
        end = self._buffer.rfind(b"\n") + 1
        if end <= self._at:
            if len(self._buffer) - self._at < LONGEST_LINE:
                return
            end = len(self._buffer)  # a line longer than anybody writes is read in parts
        self._learn(end)
        self._work(end, final=False)

    def finish(self) -> list[LineSelection]:
        """Read the last, perhaps unfinished line; return the selection of each attempt."""
        self._learn(len(self._buffer))
        self._work(len(self._buffer), final=True)
        if self._whole is not None:
            for selection, line in self._whole:
                selection.keep(line, BEGINNING)
        else:
            self._keep_end(self._at, self.lines)
            self._keep_pulses()
        self._selection.last = max(self._selection.last, self.lines)
        self.kept.append(self._selection)
        return self.kept

    # --- a stretch of whole lines

    def _learn(self, end: int) -> None:
        if not self._learnt:
            self._learnt = True
            beginning = self._buffer[: min(end, 2**20)]
            self.reader.learn(beginning.split(b"\n", SAMPLE_LINES)[:SAMPLE_LINES])

    def _work(self, end: int, *, final: bool) -> None:
        self._search(end)
        while self._whole is not None and self._at < end:
            self._line(end)
            if self.lines >= self._whole_lines or self._whole_bytes > WHOLE_BYTES:
                self._no_longer_whole()
        while self._selection.wants_more and self._at < end:
            self._line(end)
        while self._hits:
            if self._hits[0][0] <= self._at:
                self._hits.popleft()
                continue
            target = self._hits[0][0]
            self._skip_to(target)
            while self._at < end and (self._at < target or self._selection.wants_more):
                self._line(end)
        if self._at < end:
            if not final and len(self._buffer) > BEHIND_BYTES:  # else all of it is in memory
                self._pulse(end)
            else:
                self.lines += self._buffer.count(b"\n", self._at, end)
                self.lines += not self._buffer.endswith(b"\n", self._at, end)
                self._at = end

    def _search(self, end: int) -> None:
        """Find the literal texts up to `end`."""
        begin = self._at
        found = self._search_engine.hits(self._buffer[begin:end])
        hits = [(begin + at, number) for at, number in found]
        for number in sorted(self._common)[:COMMON_TEXTS]:
            hits += [(at, number) for at in _edges(self._buffer, self._texts[number], begin, end)]
        if self._common:
            hits.sort()
        self._hits = deque(hits)

    def _skip_to(self, at: int) -> None:
        """Skip to a few lines before the one that holds `at`."""
        begin = self._buffer.rfind(b"\n", self._at, at - 1) + 1 or self._at
        for _ in range(CONTEXT):
            if begin <= self._at:
                break
            begin = self._buffer.rfind(b"\n", self._at, begin - 1) + 1 or self._at
        self.lines += self._buffer.count(b"\n", self._at, begin)
        self._at = begin

    def _line(self, end: int) -> None:
        """Look at the line that begins at `_at`."""
        begin, number_before = self._at, self.lines
        raw = self._take_line(end)
        numbers: list[int] = []
        while self._hits and self._hits[0][0] <= begin + len(raw):
            place, number = self._hits.popleft()
            if place > begin and number not in numbers:
                numbers.append(number)
        self._whole_bytes += len(raw)
        spots = [self._texts[number] for number in numbers]
        signatures = [signature for text in spots for signature in _signatures_of(text)]
        for line in self.reader.read(raw, self.lines, spots):
            self.cut_lines += line.cut
            if self._attempts.feed(line.text) != self._selection.number:
                self._next_attempt(begin, number_before)
            self._selection.add(line, signatures)
            if self._whole is not None:
                self._whole.append((self._selection, line))
        for number in numbers:
            self._count(number)

    def _take_line(self, end: int) -> bytes:
        """Return the line that begins at `_at`, and step to the next one."""
        newline = self._buffer.find(b"\n", self._at, end)
        stop = newline if newline >= 0 else end
        raw = self._buffer[self._at : stop]
        self.lines += 1
        self._at = stop + 1 if newline >= 0 else stop
        return raw

    def _count(self, number: int) -> None:
        self._counts[number] += 1
        signatures = _signatures_of(self._texts[number])
        fatal = any(signature.means == "fatal" for signature in signatures)
        most = max(50, (COMMON if fatal else COMMON_SIGN) * self._cap // WHOLE_LINES)
        if self._counts[number] == most and number not in self._common:
            self._common |= {number}
            self._search_engine = signature_search().without(self._common)
            inner = [hit for hit in self._hits if hit[1] != number]
            mine = [hit for hit in self._hits if hit[1] == number]
            edges = mine[:COMMON_EACH] + mine[max(COMMON_EACH, len(mine) - COMMON_EACH) :]
            self._hits = deque(sorted(inner + edges))

    # --- ends

    def _next_attempt(self, begin: int, lines_before: int) -> None:
        if self._whole is None:
            self._keep_end(begin, lines_before)
        self._selection.last = max(self._selection.begins, lines_before)
        self.kept.append(self._selection)
        self._selection = LineSelection(self._attempts.number, self._cap, lines_before + 1)
        self._pulses.clear()

    def _no_longer_whole(self) -> None:
        """The file is too long to be kept whole: earlier attempts stay as far as there is room, of
        the present one the selection.
        """
        for selection, line in self._whole or ():
            if selection is not self._selection:
                selection.keep(line, BEGINNING)
        self._whole = None

    def _keep_end(self, stop: int, number: int) -> None:
        """Keep the last lines of each rank before `stop`, where line `number` ends, and its last
        progress, as far back as the buffer goes.
        """
        counts: dict[int | None, int] = defaultdict(int)
        steps: dict[int | None, int] = defaultdict(int)
        known = self._selection.ranks or {None}
        tail = max(8, min(TAIL, self._cap // (2 * len(known))))
        waiting = set(known)
        at, least = stop, tail
        backwards: list[tuple[Line, Stamp | None]] = []
        levels: dict[tuple[int, int], float] = {}
        # Where few lines may be kept, the last line of a rank that fell silent long ago is not
        # worth reading all of it again.
        most = min(TAIL_LINES, max(LEAST_BACK, 8 * self._cap))
        while at > 0 and number >= self._selection.begins and len(backwards) < most:
            newline = self._buffer.rfind(b"\n", 0, at - 1)
            raw, at = self._buffer[newline + 1 : at], newline + 1
            if at <= 0 and number > 1:
                break  # the buffer begins in the middle of this line
            for line, when in reversed(self.reader.untimed(raw, number)):
                backwards.append((line, when))
                rank = line.rank
                counts[rank] += 1
                level = ENDING + counts[rank] / 20 if counts[rank] <= tail else 0.0
                if (
                    steps[rank] < PROGRESS
                    and (step := read_step(line.text)) is not None
                    and (step.step is not None or step.finished)
                ):
                    steps[rank] += 1
                    level = min(level or ENDING + 9, ENDING + steps[rank] / 4)
                if level:
                    levels[line.number, line.state] = level
                if counts[rank] >= tail and (steps[rank] > 0 or counts[rank] >= 4 * tail):
                    waiting.discard(rank)
            number -= 1
            if not waiting and len(backwards) >= least:
                break
        for line, when in reversed(backwards):
            kept_at = levels.get((line.number, line.state))
            if kept_at is not None:
                self._selection.keep(self.reader.timed(line, when), kept_at)

    def _pulse(self, end: int) -> None:
        """Read the last lines of a piece: roughly the last lines of a rank that falls silent."""
        begin = end
        for _ in range(PULSE_LINES):
            if begin <= self._at:
                break
            begin = self._buffer.rfind(b"\n", self._at, begin - 1) + 1 or self._at
        self.lines += self._buffer.count(b"\n", self._at, begin)
        self._at = begin
        while self._at < end:
            raw = self._take_line(end)
            for line in self.reader.read(raw, self.lines):
                self._pulses.setdefault(line.rank, deque(maxlen=3)).append(line)

    def _keep_pulses(self) -> None:
        for lines in list(self._pulses.values())[:TAIL_LINES]:
            for line in lines:
                self._selection.keep(line, ENDING + 0.5)

    def _drop_read(self) -> None:
        drop = self._at - BEHIND_BYTES
        if drop > 0:
            cut = self._buffer.find(b"\n", drop, self._at) + 1 or self._at
            self._buffer = self._buffer[cut:]
            self._at -= cut


def _edges(content: bytes, text: bytes, begin: int, end: int) -> Iterable[int]:
    """Where the first and the last few occurrences of `text` end, one for each line."""
    found: list[int] = []
    at = begin
    for _ in range(COMMON_EACH):
        place = content.find(text, at, end)
        if place < 0:
            return found
        found.append(place + len(text))
        at = content.find(b"\n", place, end) + 1 or end
    stop = end
    last: list[int] = []
    for _ in range(COMMON_EACH):
        place = content.rfind(text, at, stop)
        if place < 0:
            break
        last.append(place + len(text))
        stop = content.rfind(b"\n", at, place) + 1 or place
    return found + last[::-1]


@lru_cache(maxsize=1)
def _by_text() -> dict[bytes, tuple[Signature, ...]]:
    found: dict[bytes, list[Signature]] = defaultdict(list)
    for signature in all_signatures():
        for text in signature.has:
            found[text.encode()].append(signature)
    return {text: tuple(signatures) for text, signatures in found.items()}


def _signatures_of(text: bytes) -> tuple[Signature, ...]:
    return _by_text().get(text, ())
