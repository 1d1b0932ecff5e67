"""Numbers, certainty and cleaned text for the report."""

from __future__ import annotations

import math
import re
import unicodedata

CERTAINTY: tuple[tuple[float, str], ...] = (
    (0.95, "almost certain"),
    (0.80, "likely"),
    (0.60, "leading"),
    (0.0, "undecided"),
)
"""The least confidence for each word; below 0.6 a cause is not named."""

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|["
    r" -/]*[0-~])?"
)
# By Unicode category: cursor movements and line breaks become a blank, invisible characters such as
# marks of the reading direction are removed, and what no terminal can draw becomes a question mark.
_SHOWN_AS = {"Cc": " ", "Zl": " ", "Zp": " ", "Zs": " ", "Cf": "", "Cs": "?", "Cn": "?", "Co": "?"}


def duration(seconds: float) -> str:
    """Return a time span: `0.4 s`, `42 s`, `11 min 04 s`, `2 h 05 min`."""
    if not math.isfinite(seconds) or seconds < 0:
        return "an unknown time"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def certainty(confidence: float, *, named: bool = True) -> str:
    """Return the word for a confidence. A cause that is not named is always undecided."""
    if not named:
        return CERTAINTY[-1][1]
    return next(word for least, word in CERTAINTY if confidence >= least or least == 0.0)


def percent(confidence: float) -> str:
    """Return a share rounded down, so that it never suggests a stronger word. It never reaches
    100 %.
    """
    share = math.floor(confidence * 100 + 1e-9)
    if share >= 100:
        return ">99 %"
    return f"{share} %" if share >= 1 else "<1 %"


def clean(text: str) -> str:
    """Return `text` as one line without anything that moves a cursor, changes a colour or
    reverses the reading direction.
    """
    text = _ESCAPE.sub("", text)
    if text.isascii() and text.isprintable():
        return text.strip()
    return "".join(_SHOWN_AS.get(unicodedata.category(letter), letter) for letter in text).strip()


def columns(text: str) -> int:
    """Return how many terminal columns a cleaned `text` takes: two for wide letters, none for
    combining marks.
    """
    if text.isascii():
        return len(text)
    shown = [letter for letter in text if not unicodedata.combining(letter)]
    return len(shown) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in shown)
