"""A cell: one launch of a rung, on so many ranks, with so many rows, with at most one knob
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainprobe.targets.launch import Part

ROWS = "{rows}"
RANKS = "{ranks}"
NODES, NODE_RANK, MASTER_ADDR, MASTER_PORT = (
    "{nodes}",
    "{node_rank}",
    "{master_addr}",
    "{master_port}",
)


@dataclass(frozen=True)
class Cell:
    """`rows` is None where the amount of data is not ours to set. `knob` (`workers=0`) is what was
    changed of the cell `of_cell`.

    `host` is the node that a probe of the host runs on, empty where there is but one.
    """

    nproc: int
    rows: int | None = None
    knob: str = ""
    of_cell: str = ""
    host: str = ""

    def name(self, probe: str) -> str:
        """`user_script@4`, `user_script@4x1000`, `user_script@4x1000#workers=0`; `host@node3`
        for what runs on each node alone.
        """
        if self.host:
            return f"{probe}@{self.host}"
        return f"{probe}@{self.nproc}{'' if self.rows is None else f'x{self.rows}'}{f'#{self.knob}' if self.knob else ''}"  # noqa: E501

    def with_knob(self, knob: str, probe: str) -> Cell:
        """The same cell with one knob changed."""
        return replace(self, knob=knob, of_cell=self.name(probe))

    def dominates(self, other: Cell) -> bool:
        """Whether this one has at least as many ranks and at least as much data."""
        return self.nproc >= other.nproc and (self.rows or 0) >= (other.rows or 0)


def grid(ranks: Iterable[int], rows: Sequence[int] = ()) -> tuple[Cell, ...]:
    """All cells, the cheapest first: by ranks times rows, then by ranks. Without rows one cell
    for each number of ranks.
    """
    return tuple(
        sorted((Cell(nproc, size) for nproc in ranks for size in rows or (None,)), key=_cost)
    )


def smallest(cells: Iterable[Cell]) -> Cell | None:
    """The cheapest of `cells` in the order of the grid; None where there are none."""
    return min(cells, key=_cost, default=None)


def filled(words: Sequence[str], cell: Cell, part: Part) -> tuple[str, ...]:
    """The words of a command with the sizes of `cell` in place of {ranks} (those on this host)
    and {rows}, and where hosts meet in place of the others.
    """
    rows = {} if cell.rows is None else {ROWS: str(cell.rows)}
    hosts = (
        {
            NODES: str(part.nodes),
            NODE_RANK: str(part.place),
            MASTER_ADDR: part.addr,
            MASTER_PORT: str(part.port),
        }
        if part.hosts
        else {}
    )
    return tuple(_replaced(word, {RANKS: str(part.nproc), **rows, **hosts}) for word in words)


def _replaced(word: str, by: dict[str, str]) -> str:
    for mark, value in by.items():
        word = word.replace(mark, value)
    return word


def _cost(cell: Cell) -> tuple[int, int, int]:
    return cell.nproc * (cell.rows or 1), cell.nproc, cell.rows or 0
