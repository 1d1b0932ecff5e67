"""Reads raw lines of a file: the plain text, who wrote it and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainprobe.logtext.plain import plain_states
from trainprobe.logtext.prefixes import NO_LABELS, Labels, learn_labels, read_prefixes
from trainprobe.logtext.stamps import FileClock, Stamp, stamp

TEXT_CAP = 2000
RAW_CAP = 200_000
LEAD = 300
AROUND = 700
SAMPLE_LINES = 200


@dataclass
class Line:
    """A plain line. `number` counts from 1, `state` counts the states of a line that overwrote each
    other. `certain`: `rank` is the job's rank, not a local number.
    """

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
    """Reads the lines of one file, with its labels and its clock."""

    def __init__(self, newest: float | None) -> None:
        self.clock = FileClock(newest)
        self.labels: Labels = NO_LABELS

    def learn(self, sample: Iterable[bytes]) -> None:
        """Learn from the first lines which ambiguous prefixes are labels."""
        self.labels = learn_labels([plain_states(decoded(raw))[-1][:TEXT_CAP] for raw in sample])

    def read(self, raw: bytes, number: int, spots: Iterable[bytes] = ()) -> list[Line]:
        """Return the states of a line, with times. A line that is too long is cut so that the first
        of the texts `spots` stays visible.
        """
        lines = self._read(raw, number, spots)
        return [self.timed(line, when) for line, when in lines]

    def untimed(self, raw: bytes, number: int) -> list[tuple[Line, Stamp | None]]:
        """The same without times, for lines that are read backwards; `timed` adds them in order."""
        return self._read(raw, number, ())

    def timed(self, line: Line, when: Stamp | None) -> Line:
        if when is not None:
            line.at = self.clock.settle(when)
        return line

    def _read(
        self, raw: bytes, number: int, spots: Iterable[bytes]
    ) -> list[tuple[Line, Stamp | None]]:
        if len(raw) > RAW_CAP:
            raw = _shortened(raw, spots)
        found = []
        for state, text in enumerate(plain_states(decoded(raw))):
            prefixes = read_prefixes(text, self.labels)
            rest, cut = prefixes.rest, len(prefixes.rest) > TEXT_CAP
            if cut:
                rest = _around(rest, spots)
            line = Line(
                number,
                state,
                rest,
                prefixes.rank,
                prefixes.certain and prefixes.rank is not None,
                prefixes.host,
                prefixes.pid,
                cut=cut,
            )
            found.append((line, prefixes.when or stamp(rest)))
        return found


def decoded(raw: bytes) -> str:
    """Decode UTF-8, or else Latin-1, so that words stay readable."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        return text if text.count("\ufffd") * 20 < len(text) else raw.decode("latin-1")


def _around(text: str, spots: Iterable[bytes]) -> str:
    """The beginning of a long line, and the surroundings of the first known text in it."""
    places = [place for spot in spots if (place := text.find(spot.decode("utf-8", "replace"))) >= 0]
    if not places or min(places) + AROUND < TEXT_CAP:
        return text[:TEXT_CAP]
    first = min(places)
    return (
        f"{text[:LEAD]} … {text[max(LEAD, first - AROUND) : first + TEXT_CAP - LEAD - AROUND - 3]}"
    )


def _shortened(raw: bytes, spots: Iterable[bytes]) -> bytes:
    places = [place for spot in spots if (place := raw.find(spot)) >= 0]
    if not places or min(places) < RAW_CAP // 2:
        return raw[:RAW_CAP]
    first = min(places)
    return raw[:4096] + b" " + raw[max(4096, first - RAW_CAP // 4) : first + RAW_CAP // 4]
