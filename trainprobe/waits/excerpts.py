"""The user's own lines at which the trouble sits: the guilty one, what encloses it, and the calls
that led there, as a compiler would show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainprobe.facts import Block, Facts, MainThread, RankException, Samples, SourceSite
from trainprobe.model.diagnosis import PlacedCause
from trainprobe.model.ranks import name_ranks
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

CALLS_CAP = 1  # that led to the guilty line
HEADERS_CAP = 3
TEXT_CAP = 200
GROUPS_CAP = 4
_DEEPEST = 12
_INDENTING = ("decorator",)
Sites = Mapping[tuple[int | None, str, int], SourceSite]


def excerpts(
    facts: Facts, placed: Sequence[PlacedCause], cells: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the lines for the first cause of each group of suspects, where they are known.
    `cells` are those of the groups.
    """
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    for cause in placed:
        if cause.group in seen or cause.group >= min(len(cells), GROUPS_CAP):
            continue
        seen.add(cause.group)
        cell = cells[cause.group]
        sites: Sites = {
            (site.rank, site.file, site.line): site for site in facts.of(SourceSite, cell=cell)
        }
        shown = _of_cause(facts, cause, cell, sites)
        if shown:
            found.append({"group": cause.group, **shown})
    return found


def _of_cause(facts: Facts, cause: PlacedCause, cell: str, sites: Sites) -> dict[str, Any]:
    """Of what it stands in or was raised in, whichever names the user's lines first: a process that
    the cause names, its ranks' exceptions, its ranks' threads.
    """
    threads = facts.of(MainThread, cell=cell)
    raised = [
        error
        for error in facts.of(RankException, cell=cell)
        if not error.echo and not error.handled and error.rank in cause.ranks
    ]
    ways = [
        *(_stands(thread) for thread in threads if _named(thread, cause)),
        *((error.rank, name_ranks((error.rank or 0,)), error.frames) for error in raised),
        *_stays(facts.of(Samples, cell=cell), cause),
        *(_stands(thread) for thread in threads if _of_rank(thread, cause)),
    ]
    for rank, who, frames in ways:
        lines = _lines(rank, frames, sites)
        if lines:
            return {"who": who, "lines": lines}
    return {}


def _stands(thread: MainThread) -> tuple[int | None, str, Sequence[Frame]]:
    known = thread.role == "rank" and thread.rank is not None and thread.rank >= 0
    return (
        thread.rank,
        name_ranks((thread.rank or 0,)) if known else f"pid {thread.pid}",
        thread.frames,
    )


def _stays(
    samples: Sequence[Samples], cause: PlacedCause
) -> Iterator[tuple[int | None, str, Sequence[Frame]]]:
    """Where its rank, or any where it is no one rank's, was met in samples, by the line that the
    cause names, though it may stand elsewhere just now.
    """
    for one in samples:
        mine = not cause.ranks or one.rank in cause.ranks
        for spell in one.spells if mine and one.role == "rank" else ():
            for depth, frame in enumerate(spell.frames):
                if is_user(frame) and frame.where in cause.summary:
                    yield one.rank, name_ranks((one.rank or 0,)), spell.frames[: depth + 1]


def _named(thread: MainThread, cause: PlacedCause) -> bool:
    return thread.role != "rank" and thread.pid in cause.pids


def _of_rank(thread: MainThread, cause: PlacedCause) -> bool:
    return thread.role == "rank" and thread.rank is not None and thread.rank in cause.ranks


def _lines(rank: int | None, frames: Sequence[Frame], sites: Sites) -> list[dict[str, Any]]:
    """The guilty line, last, and the calls that led to it; empty where no text of it is known."""
    own = [frame for frame in frames if is_user(frame) and frame.line > 0]
    places: list[tuple[Frame, str, tuple[Block, ...]]] = []
    for frame in own:
        site = sites.get((rank, frame.file, frame.line)) or _any(sites, frame)
        text = site.text if site is not None and site.text else frame.text
        if places and (places[-1][0].file, places[-1][0].line) == (frame.file, frame.line):
            places.pop()  # a comprehension is a frame of its own at the same line
        if text.strip():
            places.append((frame, text.strip(), site.blocks if site is not None else ()))
    if not places or places[-1][0] != own[-1]:
        return []
    called = [place for place in places[:-1] if place[0].name != "<module>"][-CALLS_CAP:]
    lines: list[dict[str, Any]] = []
    for frame, text, blocks in called:
        lines += _one(frame, text, blocks, headers=_conditions(blocks))
    guilty, text, blocks = places[-1]
    lines += _one(guilty, text, blocks, headers=_enclosing(blocks), guilty=True)
    return lines


def _any(sites: Sites, frame: Frame) -> SourceSite | None:
    """A worker's line was read for the rank that it belongs to."""
    return next(
        (
            site
            for (_, file, line), site in sites.items()
            if line == frame.line and file == frame.file
        ),
        None,
    )


def _conditions(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Of a call on the way: the innermost condition or loop that it stands under."""
    return tuple(block for block in blocks if block.kind in ("if", "while", "for", "case"))[-1:]


def _enclosing(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Of the guilty line: its function, and the innermost blocks in that."""
    inner = [block for block in blocks if block.kind not in ("class", "decorator")]
    start = max((place for place, block in enumerate(inner) if block.kind == "def"), default=0)
    inner = inner[start:]
    return tuple(inner if len(inner) <= HEADERS_CAP else [inner[0], *inner[1 - HEADERS_CAP :]])


def _one(
    frame: Frame,
    text: str,
    blocks: Sequence[Block],
    *,
    headers: Sequence[Block],
    guilty: bool = False,
) -> list[dict[str, Any]]:
    indenting = [block for block in blocks if block.kind not in _INDENTING]
    depth_of = {id(block): min(depth, _DEEPEST) for depth, block in enumerate(indenting)}
    file = frame.base
    rows = [
        {
            "file": file,
            "line": block.line,
            "text": _header(block)[:TEXT_CAP],
            "depth": depth_of.get(id(block), 0),
        }
        for block in headers
        if block.line > 0 and block.line != frame.line
    ]
    last: dict[str, Any] = {
        "file": file,
        "line": frame.line,
        "text": text[:TEXT_CAP],
        "depth": min(len(indenting), _DEEPEST),
        "function": frame.name,
    }
    return [*rows, {**last, "guilty": True} if guilty else last]


def _header(block: Block) -> str:
    return f"{block.text} … else:" if block.branch == "orelse" else block.text
