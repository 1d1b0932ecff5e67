"""What only the report on a live job has: the table of its ranks, the tree of their stacks, and
what time is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import RankRow, Report, StackBranch
from trainprobe.model.ranks import fold_ranks
from trainprobe.report.lines import Line, Span, span, wrapped
from trainprobe.report.phrases import clean, duration

ROWS_CAP = 24
BRANCHES_CAP = 40
_LABEL = "ranks  "


def has_ranks(report: Report) -> bool:
    """Say whether the report is on the ranks of a job: one that ran while it was looked at, or
    one that left its dumps.
    """
    return bool(report.expiry) or "world_seen" in report.extra


def rank_lines(report: Report, width: int) -> list[Line]:
    """Return one line per rank, ranks that stand alike in one: state, how long, where, and what
    it waits for.
    """
    alike: dict[tuple[str, str, str], list[RankRow]] = {}
    for row in report.world.ranks:
        alike.setdefault((row.state, row.where, row.waits_for), []).append(row)
    lines: list[Line] = []
    label = _LABEL
    for (state, where, waits_for), rows in list(alike.items())[:ROWS_CAP]:
        since = max((row.since_s for row in rows if row.since_s is not None), default=None)
        unknown = [row.pid for row in rows if row.rank is None and row.pid]
        numbers = [
            part
            for part in (
                fold_ranks(row.rank for row in rows if row.rank is not None),
                "?" if unknown else "",
            )
            if part
        ]
        parts = [span(f"{','.join(numbers):<6}", "strong")]
        pids = [row.pid for row in rows if row.pid] if len(rows) == 1 else unknown
        if pids:
            parts.append(span(f"(pid {', '.join(map(str, pids))})", "faint"))
        parts.append(span(state))
        if since is not None:
            parts.append(span(f"for {duration(since)}"))
        if where:
            parts.append(span(f"at {where}"))
        if waits_for:
            parts.append(span(f"-> {waits_for}", "faint"))
        lines += wrapped(parts, width, first=label)
        label = " " * len(_LABEL)
    if len(alike) > ROWS_CAP:
        lines += wrapped(
            [span(f"and {len(alike) - ROWS_CAP} more places; all ranks are in the JSON", "faint")],
            width,
            first=label,
        )
    return lines


def tree_lines(report: Report, width: int) -> list[Line]:
    """Return the prefix tree of the ranks' stacks: each frame with the set of ranks that stand
    in it, chains without a fork on one line.
    """
    lines: list[Line] = []
    if len(report.stacks.tree) == 0 or len(report.world.ranks) < 2:
        return lines
    _grow(report.stacks.tree, 0, lines, width)
    if len(lines) > BRANCHES_CAP:
        lines = [
            *lines[:BRANCHES_CAP],
            (Span(f"         and {len(lines) - BRANCHES_CAP} more lines in the JSON", "faint"),),
        ]
    return lines


def time_lines(report: Report, width: int) -> list[Line]:
    """Return what is left of each time limit, what killing costs, and the advice."""
    if report.verdict == "healthy" and not report.advice:
        return []
    lines: list[Line] = []
    label = "time   "
    for end in report.expiry:
        source = [span(f"({end.source})", "faint")] if end.source else []
        lines += wrapped([span(f"{end.what}:"), span(end.says), *source], width, first=label)
        label = " " * len(label)
    cost = report.killing
    if cost is not None:
        what = (
            f"newest checkpoint: {cost.checkpoint}"
            + (f", {duration(cost.age_s)} old" if cost.age_s is not None else "")
            if cost.checkpoint
            else "newest checkpoint:"
        )
        lines += wrapped(
            [span(f"{what};" if cost.checkpoint else what), span(cost.says)], width, first=label
        )
    if report.advice:
        lines += wrapped(
            [span(report.advice, "strong")], width, first=label if lines else "time   "
        )
    return lines


def header_parts(report: Report) -> list[str]:
    """Return the parts of the first line that only a live job has: `48213` after the command,
    and `world complete`.
    """
    said = report.extra.get("world_seen")
    return [clean(said)] if isinstance(said, str) and said else []


def _grow(branches: Sequence[StackBranch], depth: int, lines: list[Line], width: int) -> None:
    for branch in branches:
        frames, last = [branch.frame], branch
        while len(last.next) == 1 and last.next[0].ranks == branch.ranks:
            last = last.next[0]
            frames.append(last.frame)
        first = ("stacks " if not lines else "       ") + "  " * depth
        lines += wrapped(
            [span(f"{branch.ranks}:", "strong"), span(" > ".join(frames))],
            width,
            first=first,
            rest=" " * (len(first) + 2),
        )
        _grow(last.next, depth + 1, lines, width)
