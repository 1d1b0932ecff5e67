"""Secrets as they stand in logs, command lines and settings, and what only looks like one.

The lists hold forms, not secrets: `<<kind:length>>` is drawn at run time and must never be found,
`{{kind:length}}` is drawn too and may stay. No scanner takes these files for a leak.
"""

from __future__ import annotations

import base64
import random
import re
import string
import uuid
from pathlib import Path
from typing import NamedTuple

SIGNS = {
    "hex": "0123456789abcdef",
    "dig": string.digits,
    "an": string.ascii_letters + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + "234567",
    "upn": string.ascii_uppercase + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64u": string.ascii_letters + string.digits + "_-",
}
WORDS = """
amber basil cobalt dahlia ember fjord garnet harbor indigo juniper kestrel lantern maple nectar
opal pebble quartz raven saffron thistle umber violet walnut yarrow zephyr
""".split()
_DRAWN = re.compile(r"<<(\w+)(?::(\d+))?>>|\{\{(\w+)(?::(\d+))?\}\}")
WINDOW = 8  # so much of a secret in one piece is a leak


class Form(NamedTuple):
    """`text` as it stands somewhere; none of `secrets` may be read anywhere else."""

    name: str
    text: str
    secrets: tuple[str, ...]

    def leaks_into(self, place: str) -> bool:
        return any(piece in place for secret in self.secrets for piece in _windows(secret))


def _windows(secret: str) -> list[str]:
    if any(word in secret for word in WORDS):  # words meet by chance, their number does not
        return [secret[-WINDOW - 3 :]]
    return [secret[at : at + WINDOW] for at in range(len(secret) - WINDOW + 1)] or [secret]


def drawn(kind: str, length: int, draw: random.Random) -> str:
    if kind == "uuid":
        return str(uuid.UUID(int=draw.getrandbits(128), version=4))
    if kind == "pw":  # as people choose them
        first, second = draw.sample(WORDS, 2)
        return f"{first.title()}{draw.choice('-_!.')}{second}{draw.randrange(1000, 9999)}"
    if kind == "bx":  # name and password of a basic login
        return base64.b64encode(f"bob:{drawn('pw', 0, draw)}".encode()).decode()
    made = [draw.choice(SIGNS[kind]) for _ in range(length)]
    if kind in ("an", "b64", "b64u") and length >= 8:  # nearly all random ones hold a digit
        made[draw.randrange(2, length - 2)] = draw.choice(string.digits)
    return "".join(made)


def read_forms(name: str, seed: int) -> list[Form]:
    """The forms of one list, each drawn anew for each seed."""
    draw = random.Random(seed)
    forms = []
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines():
        title, bar, text = line.partition(" | ")
        if not bar or title.startswith("# "):
            continue
        secrets: list[str] = []

        def put(found: re.Match[str], secrets: list[str] = secrets) -> str:
            made = drawn(found[1] or found[3], int(found[2] or found[4] or 0), draw)
            secrets += [made] if found[1] else []
            return made

        text = _DRAWN.sub(put, text)
        text = re.sub(r"\\\\|\\n|\\x1b", lambda found: _ESCAPES[found[0]], text)
        forms.append(Form(title, text, tuple(secrets)))
    return forms


_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\x1b": "\x1b"}
