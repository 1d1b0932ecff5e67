"""Private keys that a log printed line by line: no line of one shows by itself what it is, so they are hidden as rows, before each is redacted."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "<hidden:private-key>"
MOST_LINES = 200
TEXT = 4
RANK = 2
_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"[A-Za-z0-9+/]{8,80}={0,2}")
# As OpenSSL (64), OpenSSH (70) and MIME (76) break lines: so such a line is one of a key or a certificate even where its beginning was not kept.
_WIDTHS = (64, 70, 76)


def hide_keys(rows: list[list[Any]]) -> None:
    """Replace, in rows of log.extract, the lines of private keys by a stand-in, in place; other lines between them stay."""
    inside: dict[Any, int] = {}
    for row in rows:
        rank, text = row[RANK], str(row[TEXT]).strip().strip("'\"")
        begins = _BEGINS.search(text)
        if begins is not None and _ENDS.search(text) is None:
            inside[rank] = MOST_LINES
            row[TEXT] = text[: begins.start()] + HIDDEN
        elif _ENDS.search(text) is not None and rank in inside:
            del inside[rank]
            row[TEXT] = HIDDEN
        elif _BODY.fullmatch(text) and (rank in inside or _random(text)):
            row[TEXT] = HIDDEN
        elif rank in inside:
            inside[rank] -= 1
            if inside[rank] <= 0:
                del inside[rank]


def _random(text: str) -> bool:
    """A whole line of base64 in one of the widths of keys."""
    return len(text) in _WIDTHS and all(any(test(sign) for sign in text) for test in (str.isupper, str.islower, str.isdigit))
