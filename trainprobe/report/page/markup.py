"""HTML from plain values. This is the only place that writes a tag, and what is no `Markup` is
cleaned and escaped here: no name, path, log line or stack frame can become a tag, a script, or
turn the reading direction.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any, Union

from trainprobe.report.phrases import clean

LONGEST = 2000
"""Of one text on the page, in characters. What is longer is in the case."""
_EMPTY = frozenset(("br", "col", "hr", "input", "meta", "link", "wbr"))
_ADDRESSES = frozenset(("href", "src", "action", "formaction", "xlink:href", "srcdoc", "data"))


class Markup(str):
    """HTML that was made here."""

    __slots__ = ()


Content = Union[str, int, float, None, "Iterable[Content]"]
"""What an element holds: `Markup` as it is, text and numbers escaped, None left out."""


def text_of(value: object, longest: int = LONGEST) -> Markup:
    """Return `value` as one line of visible text."""
    whole = str(value)
    shown = clean(whole[: 2 * longest])
    if len(whole) > 2 * longest or len(shown) > longest:
        shown = f"{shown[:longest]} … ({len(whole):,} characters)"
    # A blank at either end keeps words of two elements apart.
    before, after = " " * whole[:1].isspace(), " " * (len(whole) > 1 and whole[-1:].isspace())
    shown = f"{before}{shown}{after}"
    return Markup(html.escape(shown, quote=True))


def cleaned_lines(text: str) -> str:
    """Return `text` with its line breaks and indentation, and without anything else that a
    terminal or browser obeys.
    """
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + clean(line) for line in lines)


def lines_markup(text: str, longest: int = 200_000) -> Markup:
    """Return a text of several lines for a `<pre>`."""
    more = f" … ({len(text):,} characters)" if len(text) > longest else ""
    return Markup(html.escape(cleaned_lines(text[:longest]) + more, quote=True))


def joined(*parts: Content) -> Markup:
    """Return the parts one behind the other."""
    return Markup("".join(_written(part) for part in parts))


def prose(text: str) -> Markup:
    """Return a sentence in which what stands between backticks is code."""
    parts = text[: 4 * LONGEST].split("`")
    if len(parts) % 2 == 0:
        return text_of(text)
    return joined(
        *(element("code", part) if place % 2 else part for place, part in enumerate(parts))
    )


def element(tag: str, *children: Content, **attributes: object) -> Markup:
    """Return an element. `class_` and `data_rank` are written `class` and `data-rank`; True gives
    an attribute without a value, and None or False none.

    Raises ValueError for an address outside of the page.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _EMPTY:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def data_island(name: str, value: Any) -> Markup:
    """Return `value` as JSON that no browser runs, for the page's own script to read."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if name == "viewbox":
        name = "viewBox"
    if value is True:
        return f" {name}"
    if name.startswith("on") or name == "style":
        raise ValueError(f"the page has no attribute {name}")
    if name in _ADDRESSES and not str(value).startswith("#"):
        raise ValueError(f"{name} leads out of the page")
    return f' {name}="{text_of(value)}"'


def _written(part: Content) -> str:
    if part is None:
        return ""
    if isinstance(part, Markup):
        return part
    if isinstance(part, str):
        return text_of(part)
    if isinstance(part, (int, float)):
        return text_of(f"{part:g}" if isinstance(part, float) else part)
    return "".join(_written(each) for each in part)
