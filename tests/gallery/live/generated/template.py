"""Program text with `$names` and with holes, which are comment lines `#: place`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template

HOLE = re.compile(r"^(?P<indent>[ ]*)#: (?P<place>\w+)\n", re.MULTILINE)
MARK = "  #@"  # stands at the first line of what a mechanism put in, until the text is done


def filled(text: str, inserts: Mapping[str, str]) -> str:
    """The text with each hole filled, at the indentation of the hole; other holes vanish."""

    def of(hole: re.Match[str]) -> str:
        lines = inserts.get(hole["place"], "").strip("\n").splitlines()
        return "".join(f"{hole['indent']}{line}".rstrip() + "\n" for line in lines)

    return HOLE.sub(of, text)


def holes(text: str) -> set[str]:
    return {hole["place"] for hole in HOLE.finditer(text)}


def named(text: str, names: Mapping[str, str]) -> str:
    """The text with its `$names` replaced; KeyError where a name has no word."""
    return Template(text).substitute(names)


def marked(code: str) -> str:
    """The code with the mark at its first line."""
    first, _, rest = code.strip("\n").partition("\n")
    return f"{first}{MARK}\n{rest}"


def without_mark(text: str) -> tuple[str, int]:
    """The text without its mark, and the number of the marked line; 0 where there is none."""
    lines = text.splitlines()
    line = next((n for n, own in enumerate(lines, 1) if own.endswith(MARK)), 0)
    return text.replace(MARK, ""), line
