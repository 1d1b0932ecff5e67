"""One raw line of a file as what it says, who says it and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainprobe.logtext.plain import plain_states
from trainprobe.logtext.speakers import NO_LABELS, Labels, labelled, speaker
from trainprobe.logtext.stamps import FileClock, Stamp, stamp

TEXT_CAP = 2000
RAW_CAP = 200_000
LEAD = 300
AROUND = 700
SAMPLE_LINES = 400


@dataclass
class Line:
    """`number` counts from 1, `state` the states of one line that overwrote each other. `certain`: `rank` is the job's rank, not a local number."""

    number: int
    state: int
    text: str
    rank: int | None = None
    certain: bool = False
    host: str = ""
    pid: int | None = None
    at: float | None = None
    cut: bool = False


class LineReader:
    """Reads the lines of one file: knows its labels and its clock. `rank` is that of the whole file, None where it has several or none."""

    def __init__(self, newest: float | None) -> None:
        self.clock = FileClock(newest)
        self.labels: Labels = NO_LABELS

    def learn(self, sample: Iterable[bytes]) -> None:
        """Decide from the first lines which doubtful prefixes are labels."""
        self.labels = labelled([plain_states(decoded(raw))[-1][:TEXT_CAP] for raw in sample])

    def read(self, raw: bytes, number: int, spots: Iterable[bytes] = ()) -> list[Line]:
        """Return the states of a line, with the time as its clock goes on. `spots` are texts that must be visible where a line is cut."""
        lines = self._read(raw, number, spots)
        return [self.timed(line, when) for line, when in lines]

    def untimed(self, raw: bytes, number: int) -> list[tuple[Line, Stamp | None]]:
        """The same without the clock, for lines that are read backwards; `timed` then completes them in order."""
        return self._read(raw, number, ())

    def timed(self, line: Line, when: Stamp | None) -> Line:
        if when is not None:
            line.at = self.clock.settle(when)
        return line

    def _read(self, raw: bytes, number: int, spots: Iterable[bytes]) -> list[tuple[Line, Stamp | None]]:
        if len(raw) > RAW_CAP:
            raw = _shortened(raw, spots)
        found = []
        for state, text in enumerate(plain_states(decoded(raw))):
            said = speaker(text, self.labels)
            rest, cut = said.rest, len(said.rest) > TEXT_CAP
            if cut:
                rest = _around(rest, spots)
            line = Line(number, state, rest, said.rank, said.certain and said.rank is not None, said.host, said.pid, cut=cut)
            found.append((line, said.when or stamp(rest)))
        return found


def decoded(raw: bytes) -> str:
    """UTF-8 where it is that, else the 8-bit characters of Western Europe, so that words stay readable."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        return text if text.count("\ufffd") * 20 < len(text) else raw.decode("latin-1")


def _around(text: str, spots: Iterable[bytes]) -> str:
    """The beginning of a long line and what stands around the first known text in it."""
    places = [place for spot in spots if (place := text.find(spot.decode("utf-8", "replace"))) >= 0]
    if not places or min(places) + AROUND < TEXT_CAP:
        return text[:TEXT_CAP]
    first = min(places)
    return f"{text[:LEAD]} … {text[max(LEAD, first - AROUND) : first + TEXT_CAP - LEAD - AROUND - 3]}"


def _shortened(raw: bytes, spots: Iterable[bytes]) -> bytes:
    places = [place for spot in spots if (place := raw.find(spot)) >= 0]
    if not places or min(places) < RAW_CAP // 2:
        return raw[:RAW_CAP]
    first = min(places)
    return raw[:4096] + b" " + raw[max(4096, first - RAW_CAP // 4) : first + RAW_CAP // 4]
