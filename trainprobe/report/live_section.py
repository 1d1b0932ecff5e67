"""Sections of a report on a live job: the table of its ranks, the tree of their stacks, and the
time that is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import RankRow, Report, StackBranch
from trainprobe.model.ranks import fold_ranks
from trainprobe.report.excerpt_section import guilty_places
from trainprobe.report.extra import text_of
from trainprobe.report.lines import Block, Line, Span, span, wrapped
from trainprobe.report.phrases import clean, duration

ROWS_CAP = 24
ROWS_OF_FIRST_SCREEN = 8
BRANCHES_CAP = 40
_LONGEST_LINE = 70
_LONGEST_CYCLE = 4
_WORTH_FOLDING = 3


def has_ranks(report: Report) -> bool:
    """Whether the report is about the ranks of a job: a running one, or one that left its dumps."""
    return bool(report.expiry) or "world_seen" in report.extra


def rank_lines(report: Report, width: int, *, every: bool = True) -> list[Line]:
    """Return one line for each rank, or for ranks in the same state: state, how long, where, and
    what it waits for; the first few kinds, or with `every` many.
    """
    cap = ROWS_CAP if every else ROWS_OF_FIRST_SCREEN
    marked = frozenset() if every else guilty_places(report)
    alike: dict[tuple[str, str, str], list[RankRow]] = {}
    for row in report.world.ranks:
        alike.setdefault((row.state, row.where, row.waits_for), []).append(row)
    block = Block("ranks  ", width)
    for (state, where, waits_for), rows in list(alike.items())[:cap]:
        since = max((row.since_s for row in rows if row.since_s is not None), default=None)
        unknown = [row.pid for row in rows if row.rank is None and row.pid]
        known = fold_ranks(row.rank for row in rows if row.rank is not None)
        numbers = ",".join(filter(None, (known, "?" if unknown else "")))
        parts = [span(f"{numbers:<6}", "strong")]
        pids = [row.pid for row in rows if row.pid] if len(rows) == 1 else unknown
        if pids:
            parts.append(span(f"(pid {', '.join(map(str, pids))})", "faint"))
        parts.append(span(state))
        if since is not None:
            parts.append(span(f"for {duration(since)}"))
        if where:
            parts.append(span(where.strip() if where.strip().startswith("in ") else f"at {where}"))
        if rows[0].source and where.partition(" in ")[0].strip() not in marked:
            parts.append(span(f"`{shortened(rows[0].source)}`", "strong"))
        if waits_for:
            parts.append(span(f"-> {waits_for}", "faint"))
        block.add(*parts)
    block.add_rest(len(alike) - cap, "more places; all ranks are in the JSON")
    return block.lines


def shortened(line: str) -> str:
    """A line of the program, short enough for a table."""
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1].rstrip()}…"


def tree_lines(report: Report, width: int) -> list[Line]:
    """Return the prefix tree of the ranks' stacks: each frame with its set of ranks, chains
    without a fork on one line.
    """
    lines: list[Line] = []
    if len(report.stacks.tree) == 0 or len(report.world.ranks) < 2:
        return lines
    _grow(report.stacks.tree, 0, lines, width)
    if len(lines) > BRANCHES_CAP:
        rest = f"         and {len(lines) - BRANCHES_CAP} more lines in the JSON"
        lines = [*lines[:BRANCHES_CAP], (Span(rest, "faint"),)]
    return lines


def time_lines(report: Report, width: int, *, brief: bool = False) -> list[Line]:
    """Return the time that is left until each limit, what killing costs, and the advice; `brief`
    leaves the advice.
    """
    if report.verdict == "healthy" and not report.advice:
        return []
    if brief:
        return wrapped([span(report.advice)], width, first="now    ") if report.advice else []
    block = Block("time   ", width)
    for end in report.expiry:
        source = [span(f"({end.source})", "faint")] if end.source else []
        block.add(span(f"{end.what}:"), span(end.says), *source)
    cost = report.killing
    if cost is not None:
        what = "newest checkpoint:"
        if cost.checkpoint:
            age = f", {duration(cost.age_s)} old" if cost.age_s is not None else ""
            what = f"newest checkpoint: {cost.checkpoint}{age};"
        block.add(span(what), span(cost.says))
    if report.advice:
        block.add(span(report.advice, "strong"))
    return block.lines


def header_parts(report: Report) -> list[str]:
    """Return the parts of the first line that only a live job has, such as `world complete`."""
    seen = text_of(report.extra, "world_seen")
    return [clean(seen)] if seen else []


def _grow(branches: Sequence[StackBranch], depth: int, lines: list[Line], width: int) -> None:
    for branch in branches:
        frames, last = [branch.frame], branch
        while len(last.next) == 1 and last.next[0].ranks == branch.ranks:
            last = last.next[0]
            frames.append(last.frame)
        first = ("stacks " if not lines else "       ") + "  " * depth
        pieces = [span(f"{branch.ranks}:", "strong"), span(" > ".join(_unrepeated(frames)))]
        lines += wrapped(pieces, width, first=first, rest=" " * (len(first) + 2))
        _grow(last.next, depth + 1, lines, width)


def _unrepeated(frames: Sequence[str]) -> list[str]:
    """The frames with what calls itself again and again once, and how often."""
    shown: list[str] = []
    place = 0
    while place < len(frames):
        period, times = _repeats(frames, place)
        shown += frames[place : place + period]
        if times > 1:
            shown[-1] += f" (x {times})" if period == 1 else f" (these {period} x {times})"
        place += period * times
    return shown


def _repeats(frames: Sequence[str], place: int) -> tuple[int, int]:
    """How many frames from `place` on repeat as one, and how often they do."""
    for period in range(1, _LONGEST_CYCLE + 1):
        cycle, times = frames[place : place + period], 1
        while frames[place + times * period : place + (times + 1) * period] == cycle:
            times += 1
        if times >= _WORTH_FOLDING:
            return period, times
    return 1, 1
