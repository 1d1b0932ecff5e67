"""The source around the lines that stacks and tracebacks name."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Block:
    """A statement that encloses a line. `kind` is if, for, while, with, try or def; `branch` is body, orelse or handler."""

    kind: str = ""
    line: int = 0
    text: str = ""
    branch: str = "body"


@dataclass(frozen=True)
class SourceSite(Fact):
    """One line and what encloses it, innermost last."""

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    blocks: tuple[Block, ...] = ()
