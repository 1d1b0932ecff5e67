"""Time stamps at the beginning of lines, as Unix seconds.

A stamp without a zone counts as UTC: a job has one zone, and only differences matter.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from typing import NamedTuple

HEAD = 160
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_CLOCK = r"(?P<h>\d{2}):(?P<m>\d{2}):(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?"
_ZONE = r"(?:\s?(?P<z>Z|UTC|GMT|[+-]\d{2}:?\d{2})(?![\w:]))?"
_MONTH = r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? "
_OPEN = r"[\[(<{|]?\s{0,2}"
_CLOSE = r"(?P<close>\s{0,2}[\])>}])?"
# The kinds: full (date and time), no-year, clock (time of day alone), relative (since something
# unknown).
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        # 2024-11-21 10:00:00,123 · 2024-11-21T10:00:00.123Z · 2024/11/21 10:00:00 ·
        # [2024-11-21-10:00:00] · [20241121 10:00:00] · [NeMo W 2024-11-21 10:00:00 x:1]
        (
            "full",
            _OPEN + r"(?:[A-Za-z]{1,8} (?:[A-Z]"
            r" )?)?(?P<y>\d{4})([-/.])?(?P<mo>\d{2})(?(2)\2)(?P<d>\d{2})[T _:-]{1,2}"
            + _CLOCK
            + _ZONE
            + _CLOSE,
        ),
        # 11/21/2024 10:00:00, as the examples of transformers set it
        (
            "full",
            _OPEN + r"(?P<mo>\d{2})/(?P<d>\d{2})/(?P<y>\d{4})[ T,-]{1,2}" + _CLOCK + _ZONE + _CLOSE,
        ),
        # [11/21/24 10:00:00] of rich's logging
        ("full", _OPEN + r"(?P<mo>\d{2})/(?P<d>\d{2})/(?P<yy>\d{2})[ T,-]{1,2}" + _CLOCK + _CLOSE),
        # Thu Nov 21 10:00:00 2024 · [Thu Nov 21 10:00:00 2024] of dmesg -T · Thu Nov 21 10:00:00
        # UTC 2024
        (
            "full",
            _OPEN
            + _DAY
            + _MONTH
            + r"\s{1,2}(?P<d>\d{1,2}) "
            + _CLOCK
            + r"(?: (?P<z>[A-Z]{2,5}))? (?P<y>\d{4})(?!\d)"
            + _CLOSE,
        ),
        # Thu, 21 Nov 2024 10:00:00 +0000 · 21/Nov/2024:10:00:00 +0000 · 21 Nov 2024 10:00:00
        (
            "full",
            _OPEN
            + f"(?:{_DAY})?"
            + r"(?P<d>\d{1,2})[ /-]"
            + _MONTH
            + r"[ /-](?P<y>\d{4})[ :]"
            + _CLOCK
            + _ZONE
            + _CLOSE,
        ),
        # Nov 21 10:00:00 of syslog · [Thu Nov 21 10:00:00]
        ("no-year", _OPEN + f"(?:{_DAY})?" + _MONTH + r"\s{1,2}(?P<d>\d{1,2}) " + _CLOCK + _CLOSE),
        # E1121 10:11:12.345678 of glog, with or without a bracket; torch's own writes no zero
        # before the month: E429
        ("no-year", r"\[?[IWEFVD](?P<mo>\d{1,2})(?P<d>\d{2}) " + _CLOCK),
        # [11/21 10:00:00 d2.utils.events] of detectron2 · 11-21 10:00:00
        ("no-year", _OPEN + r"(?P<mo>\d{2})[/-](?P<d>\d{2}) " + _CLOCK + _CLOSE),
        # [E 10:11:12.3 …] · [10:11:12] · 10:11:12
        ("clock", _OPEN + r"(?:[IWEFVD] )?" + _CLOCK + r"(?!\d|:)" + _CLOSE),
        # 1732183200.123 · [1732183200]
        ("epoch", _OPEN + r"(?P<e>1[0-9]{9}(?:[.,]\d{1,9})?)(?![\d.])" + _CLOSE),
        # [12345.678901] of dmesg
        ("relative", r"(?:<\d{1,3}>)?\[\s{0,8}(?P<e>\d{1,9}\.\d{6})\]"),
    )
)
_BEGINNING = re.compile(
    r"[\[(<{|]?\s{0,2}(?:[\dIWEFVD]|Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug"
    r"|Sep|Oct|Nov|Dec|NeMo)"
)
# A stamp in the middle of a line that says when it was written.
_INSIDE = re.compile(
    r"\bslurmstepd(?:-[\w.-]{1,80})?: error: .{0,200}? (?:ON|on) \S{1,200}"
    r" (?:CANCELLED|cancelled) AT (?P<at>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})|\btime +:"
    r" (?P<row>\d{4}-\d{2}-\d{2}_\d{2}:\d{2}:\d{2})$"
    r"|(?:^|[\s{,\"@])(?:time|ts|timestamp|asctime)\"?\s?[=:]\s?\"?(?P<field>\d{4}-\d{2}-\d{2}[T"
    r" ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?)"
)
# A level before the stamp: `[INFO|trainer.py:2345] 2024-…`, `INFO 11-21 10:00:00 [engine.py:12]`,
# `DLL 2024-…` of NVIDIA's dllogger.
_LEVEL = re.compile(
    r"\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|FATAL|DLL)\b[^\s\]]{0,80}\]?"
    r"[ :|-]{1,4}(?=[\d\[])"
)
_DAY_S = 86400.0
_YEARS = (1990, 2100)


class Stamp(NamedTuple):
    """`kind`: full, no-year (with `month` and `day`), clock or relative. `at`: Unix seconds (full),
    seconds of the day (no-year, clock), or since an unknown time (relative). `zoned`: the zone is
    known. `end`: where the stamp ends in the line, 0 if it is not at the beginning.
    """

    at: float
    kind: str
    zoned: bool
    end: int
    month: int = 0
    day: int = 0


@functools.lru_cache(maxsize=16)  # the same line is asked for behind each of its prefixes
def stamp(line: str) -> Stamp | None:
    """Return the stamp at the beginning of a plain line without prefixes, or None. Never raises."""
    head = line[:HEAD].lstrip(" ")
    left = len(line[:HEAD]) - len(head)
    level = _LEVEL.match(head) if head[:1] in "[IWEDCF" and head else None
    if level is not None:
        found = stamp(head[level.end() :])
        return None if found is None else found._replace(end=0)
    if _BEGINNING.match(head) is None:
        inside = (
            _INSIDE.search(line[:2000])
            if "slurmstepd" in head or "time" in head[:8] or head[:1] in ("{", "l", "t")
            else None
        )
        text = None if inside is None else next(group for group in inside.groups() if group)
        found = None if text is None else stamp(text.replace("_", " "))
        return None if found is None else found._replace(end=0)
    for kind, pattern in _FORMS:
        match = pattern.match(head)
        if match is not None:
            found = _read(kind, match, left)
            if found is not None:
                return found
    return None


def _read(kind: str, match: re.Match[str], left: int) -> Stamp | None:
    part = match.groupdict()
    end = left + match.end()
    if kind in ("epoch", "relative"):
        value = float(part["e"].replace(",", "."))
        return Stamp(value, "full" if kind == "epoch" else kind, kind == "epoch", end)
    hours, minutes, seconds = int(part["h"]), int(part["m"]), int(part["s"])
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    of_day = (
        hours * 3600 + minutes * 60 + seconds + (float(f"0.{part['f']}") if part.get("f") else 0.0)
    )
    if kind == "clock":
        return Stamp(of_day, kind, zoned=False, end=end)
    month = int(part["mo"]) if part.get("mo") else _MONTHS[part["mon"].lower()]
    day = int(part["d"])
    if kind == "no-year":
        return (
            Stamp(of_day, kind, zoned=False, end=end, month=month, day=day)
            if 1 <= month <= 12 and 1 <= day <= 31
            else None
        )
    if month > 12 >= day:  # 21/11/2024
        month, day = day, month
    midnight = _midnight(int(part["y"]) if part.get("y") else 2000 + int(part["yy"]), month, day)
    if midnight is None:
        return None
    offset = _offset_s(part.get("z") or "")
    return Stamp(midnight + of_day - (offset or 0), "full", offset is not None, end)


@functools.lru_cache(maxsize=512)
def _midnight(year: int, month: int, day: int) -> float | None:
    if not _YEARS[0] <= year <= _YEARS[1]:
        return None
    try:
        return dt.datetime(year, month, day, tzinfo=dt.timezone.utc).timestamp()
    except ValueError:
        return None


@functools.lru_cache(maxsize=64)
def _offset_s(zone: str) -> int | None:
    if zone in ("Z", "UTC", "GMT"):
        return 0
    if zone[:1] not in ("+", "-"):
        return None
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


class FileClock:
    """The clock of one file: completes stamps without year or date from the others in the file.

    `newest` (Unix s) is when the file was last written, if known: it gives the year and the day
    where the file has no full stamp.
    """

    def __init__(self, newest: float | None = None) -> None:
        self._newest = newest
        self._last: float | None = None
        self._kinds: set[str] = set()
        self._zoned: set[bool] = set()
        self._day_from_stamp = False
        self._anchored = newest is not None

    @property
    def kind(self) -> str:
        """What the times can be compared with: `wall` and `wall-utc` (known zone) with files of the
        same kind; `day` (unknown date) and `relative` within the file only; `none`.
        """
        if not self._kinds:
            return "none"
        if self._kinds <= {"relative"}:
            return "relative"
        if self._kinds <= {"clock", "relative"} and not self._anchored:
            return "day"
        return "wall-utc" if self._zoned == {True} else "wall"

    def read(self, line: str) -> float | None:
        """Return the time of a line, or None."""
        found = stamp(line)
        return None if found is None else self.settle(found)

    def settle(self, found: Stamp) -> float | None:
        """Return the time of a stamp in Unix seconds, or on the clock that `kind` names."""
        at = self._completed(found)
        if at is None or not math.isfinite(at):
            return None
        if found.kind == "relative" and self._kinds - {"relative"}:
            return None  # a second clock in a file with wall time means nothing
        self._kinds.add(found.kind)
        if found.kind != "relative":
            self._zoned.add(found.zoned)
        if self._last is None or at > self._last:
            self._last = at
        return at

    def _completed(self, found: Stamp) -> float | None:
        if found.kind in ("full", "relative"):
            if found.kind == "full":
                self._day_from_stamp = self._anchored = True
            return found.at
        reference = self._last if self._last is not None else self._newest
        if found.kind == "no-year":
            return self._with_year(found, reference)
        if reference is None:
            return found.at
        midnight = math.floor(reference / _DAY_S) * _DAY_S
        # Nearest to what is known; a file's first stamp without a date lies before its last
        # writing.
        candidates = [midnight + found.at + days * _DAY_S for days in (-1, 0, 1)]
        if self._last is None:
            before = [each for each in candidates if each <= reference + 43200]
            return before[-1] if before else candidates[0]
        return min(candidates, key=lambda each: abs(each - reference))

    def _with_year(self, found: Stamp, reference: float | None) -> float | None:
        if reference is None:
            year = 2000  # a leap year: 29 February is a day
        else:
            self._anchored = True
            year = dt.datetime.fromtimestamp(reference, tz=dt.timezone.utc).year
        moments = [
            each + found.at
            for each in (_midnight(year + shift, found.month, found.day) for shift in (-1, 0, 1))
            if each is not None
        ]
        if not moments:
            return None
        return (
            min(moments, key=lambda each: abs(each - reference))
            if reference is not None
            else _midnight_in(year, found)
        )


def _midnight_in(year: int, found: Stamp) -> float | None:
    midnight = _midnight(year, found.month, found.day)
    return None if midnight is None else midnight + found.at
