"""The planted faults: what is changed in which architecture, which cause it is and what has to
be named.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
import textwrap
from typing import Any, NamedTuple

from tests.gallery.models.architectures import ARCHITECTURES, source
from trainprobe.shipped import read_yaml

FAULTS = os.path.join(os.path.dirname(__file__), "faults")
SIZE = re.compile(r"^\d+(x\d+)*$")
KNOWN = frozenset(
    {
        "model-shape-fault",
        "model-mask-fault",
        "tied-weights-lost",
        "precision-fault",
        "state-dict-mismatch",
        "resume-mismatch",
        "multi-rank-mismatch",
        "ddp-unused-parameters",
        "eval-not-deterministic",
        "model-config-fault",
        "nan-loss",
    }
)


class Fault(NamedTuple):
    """`causes`: what may be said first. `where`: names that are right, `root` for the model itself,
    `size` for any size, `options:a` for option a.

    `proof` is the check that shows the wrong number without the tool (proofs.py). `options` only
    where a configuration is the fault.
    """

    name: str
    architecture: str
    causes: tuple[str, ...]
    where: tuple[str, ...]
    proof: str
    edits: tuple[tuple[str, str], ...]
    options: dict[str, Any]

    @property
    def part(self) -> str:
        """Development or reporting: by a hash of the name, so that nobody chooses."""
        return "development" if hashlib.sha256(self.name.encode()).digest()[0] % 2 else "reporting"

    def program(self) -> str:
        """The whole text of the faulty program."""
        text = source(self.architecture)
        for old, new in self.edits:
            text = edited(text, old, new, self.name)
        return text

    def named(self, where: str, what: str = "") -> bool:
        """Is `where` (or `what`, for a loss or a model as a whole) one of the right names?"""
        root = ARCHITECTURES[self.architecture].root
        for right in self.where:
            if right == "root" and (where in ("", root, root.lower(), "model", "forward", "self")):
                return True
            if right == "size" and (SIZE.match(where) or what == "size"):
                return True
            if right == "loss" and "loss" in (where, what):
                return True
            if right.startswith("options:"):
                if right[8:] in re.findall(r"(\w+)=", where):
                    return True
                continue
            if fnmatch.fnmatchcase(where, right):
                return True
        return False


def edited(text: str, old: str, new: str, name: str) -> str:
    """Replace the lines `old`, however deep they are indented, or a part of a line. Raises
    ValueError unless it stands there once.
    """
    for depth in range(0, 28, 4):
        lines = "\n" + textwrap.indent(old, " " * depth) + "\n"
        if f"\n{text}".count(lines) == 1:
            return f"\n{text}".replace(lines, "\n" + textwrap.indent(new, " " * depth) + "\n")[1:]
    for depth in range(0, 28, 4):  # the last line may go on
        lines = "\n" + textwrap.indent(old, " " * depth)
        if f"\n{text}".count(lines) == 1:
            return f"\n{text}".replace(lines, "\n" + textwrap.indent(new, " " * depth))[1:]
    if "\n" not in old and text.count(old) == 1:
        return text.replace(old, new)
    raise ValueError(f"{name}: this does not stand in the program once:\n{old}")


def faults() -> list[Fault]:
    """All planted faults, in the order of their files."""
    found = []
    for path in sorted(glob.glob(os.path.join(FAULTS, "*.yaml"))):
        with open(path, encoding="utf-8") as file:
            for one in read_yaml(file.read()):
                edits = tuple((edit["old"], edit["new"]) for edit in one["edits"])
                architecture = os.path.basename(path)[: -len(".yaml")]
                found.append(
                    Fault(
                        one["name"],
                        architecture,
                        tuple(one["causes"]),
                        tuple(one["where"]),
                        one["proof"],
                        edits,
                        one.get("options", {}),
                    )
                )
    return found
