"""The report as text: the canonical form. Colour, pages and terminals never change its words."""

from __future__ import annotations

import shlex

from trainprobe.model.diagnosis import LadderRow, PlacedCause, Report, Undecided
from trainprobe.model.ranks import fold_ranks, name_ranks
from trainprobe.report.cause_section import UNKNOWN, cause_lines
from trainprobe.report.comparison_section import comparison_lines
from trainprobe.report.excerpt_section import excerpt_lines
from trainprobe.report.ladder_section import ladder_lines
from trainprobe.report.lines import Block, Line, Span, Style, plain, span, wrapped
from trainprobe.report.live_section import (
    has_ranks,
    header_parts,
    rank_lines,
    time_lines,
    tree_lines,
)
from trainprobe.report.log_section import log_lines
from trainprobe.report.matrix_section import climb_sentence, matrix_lines
from trainprobe.report.phrases import clean, duration
from trainprobe.report.prediction_section import prediction_lines
from trainprobe.report.readiness_section import is_in_checks, readiness_lines, readiness_of
from trainprobe.report.sbatch_section import sbatch_lines
from trainprobe.report.suite_section import suite_lines

WIDTH = 100
NARROWEST = 60
WARNINGS_CAP = 6
LIKELY = 0.8  # from here on a cause is called likely
WORTH_SAYING_S = 1.0
_MOST_REACH = 120
"""A wait that is no longer than the two looks are apart says nothing about how long a job has
hung.
"""
EMPTY: Line = (Span(""),)
VERDICT_STYLE: dict[str, Style] = {
    "healthy": "good",
    "hung": "bad",
    "crashed": "bad",
    "slow": "warn",
    "at-risk": "warn",
    "undetermined": "warn",
}


def text_of(report: Report, width: int = WIDTH, *, verbose: bool = False) -> str:
    """Return the report as text of at most `width` columns (60 to 100), with a final newline."""
    lines = report_lines(report, width, verbose=verbose)
    return "".join(f"{plain(line)}\n" for line in lines)


def quiet_text_of(report: Report, width: int = WIDTH) -> str:
    """Return the text for `--quiet`: the headline, and the first cause of each suspect group with
    its first fix.
    """
    return "".join(f"{plain(line)}\n" for line in quiet_lines(report, width))


def report_lines(report: Report, width: int = WIDTH, *, verbose: bool = False) -> list[Line]:
    """Return the report as styled lines: the answer first, what to do, then what it rests on.

    `verbose` adds the evidence's ids and points, the chain, the stacks, the time that is left, and
    what could not be looked at although the answer does not hang on it.
    """
    width = max(NARROWEST, min(width, WIDTH))
    ladder = _unchanged_rows(report)
    causes = [
        cause_lines(
            first,
            place,
            width,
            others=others,
            verbose=verbose,
            said=report.says,
            source=excerpt_lines(report, first.group, width),
        )
        for place, first, others in _places(report.causes)
    ]
    climbed = [
        matrix_lines(report, width),
        ladder_lines(ladder, width, brief=report.verdict != "healthy"),
        suite_lines(ladder, width),
    ]
    blocks = [
        _where(report, width),
        [*headline(report, width), *climb_sentence(report, width)],
        *causes,
        comparison_lines(report, width, verbose=verbose),
        *climbed,
        sbatch_lines(report, width) or readiness_lines(report, width),
        _victims(report, width) if verbose or not has_ranks(report) else [],
        prediction_lines(report, width),
        log_lines(report, width),
    ]
    if has_ranks(report):
        tree = verbose and report.verdict != "healthy"
        rows = rank_lines(report, width, every=verbose)
        blocks += [[*rows, *(tree_lines(report, width) if tree else [])]]
        blocks += [time_lines(report, width, brief=not verbose)]
    blocks += [_open_ends(report, width, verbose=verbose), _footer(report, width, verbose=verbose)]
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [EMPTY, *block] if lines else block
    return lines


def _unchanged_rows(report: Report) -> tuple[LadderRow, ...]:
    """The rows of the ladder without the cells in which a knob was changed, which the matrix
    shows. `ready` climbs a few rungs only, so its skipped rungs are left out.
    """
    cells = report.climb.cells if report.climb is not None else ()
    knobs = {cell.cell for cell in cells if cell.knob}
    ready = bool(readiness_of(report))
    return tuple(
        row
        for row in report.ladder
        if row.cell not in knobs and not (ready and row.outcome == "skipped")
    )


def quiet_lines(report: Report, width: int = WIDTH) -> list[Line]:
    """Return the headline and the head of each group, as styled lines."""
    width = max(NARROWEST, min(width, WIDTH))
    lines = [*headline(report, width), *climb_sentence(report, width)]
    for place, first, _ in _places(report.causes):
        lines += cause_lines(first, place, width, brief=True)
    return lines


def headline(report: Report, width: int = WIDTH) -> list[Line]:
    """Return the verdict and who it is about, such as `HUNG for 11 min 04 s. Rank 3 on node7
    holds up the other seven.`, as lines.
    """
    verdict = report.verdict.upper()
    waits = (row.since_s for row in report.world.ranks if row.state == "waiting" and row.since_s)
    waited_s = max(waits, default=0.0)
    if report.verdict == "hung" and waited_s >= WORTH_SAYING_S:
        verdict += f" for {duration(waited_s)}"
    suspects = " ".join(suspect.says for suspect in report.suspects)
    says = span(report.says or suspects or _default_sentence(report), "strong")
    lines = wrapped([span(f"{verdict}.", VERDICT_STYLE[report.verdict]), says], width)
    if not report.conclusive and report.verdict != "undetermined":
        doubt = "Not conclusive: something that could have changed this verdict was not seen."
        lines += wrapped([span(doubt, "warn")], width)
    return lines


def _default_sentence(report: Report) -> str:
    if report.verdict == "healthy":
        return "Every rung that applies passed."
    return "Nothing was seen that decides it." if report.verdict == "undetermined" else ""


def _where(report: Report, width: int) -> list[Line]:
    pid = report.extra.get("pid")
    reach = str(report.extra.get("reach") or "")[:_MOST_REACH].removeprefix("trainprobe ")
    parts = [reach or (f"{report.command} {pid}" if isinstance(pid, int) else report.command)]
    form = report.extra.get("form")
    if isinstance(form, str) and form not in ("", "none"):
        parts.append(form)
    hosts = list(dict.fromkeys(row.host for row in report.world.ranks if row.host))
    if report.world.size:
        size = f"{report.world.size} {'rank' if report.world.size == 1 else 'ranks'}"
        where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
        parts.append(f"{size} on {where}" if hosts else size)
    parts += header_parts(report)
    if report.looked_s:
        parts.append(f"looked for {duration(report.looked_s)}")
    return wrapped([span(" · ".join(parts), "faint")], width)


def first_causes(report: Report) -> list[PlacedCause]:
    """Return the first cause of each suspect group, in the order of the report."""
    return [first for _, first, _ in _places(report.causes)]


def _places(causes: tuple[PlacedCause, ...]) -> list[tuple[int, PlacedCause, list[PlacedCause]]]:
    """Return the first cause of each suspect group with its place, and those behind it."""
    groups: dict[int, list[PlacedCause]] = {}
    for cause in causes:
        groups.setdefault(cause.group, []).append(cause)
    return [(place, group[0], group[1:]) for place, group in enumerate(groups.values(), start=1)]


def _victims(report: Report, width: int) -> list[Line]:
    block = Block("victims  ", width)
    for cascade in report.cascade:
        known = 0 <= cascade.because_of < len(report.causes)
        because = report.causes[cascade.because_of].id if known else ""
        who = name_ranks(cascade.ranks)
        says = cascade.says or f"carry no blame: they suffer from {because}"
        repeats = who.lower() in says.lower() or fold_ranks(cascade.ranks) in says
        block.add(*([] if repeats else [span(f"{who}:")]), span(says))
    return block.lines


def _open_ends(report: Report, width: int, *, verbose: bool) -> list[Line]:
    ruled_out, not_seen = Block("ruled out  ", width), Block("could not look  ", width)
    undecided, unexplained = Block("undecided  ", width), Block("unexplained  ", width)
    warnings = Block("warning  ", width)
    first = [cause for cause in first_causes(report) if cause.id == UNKNOWN]
    steps = [step for cause in first for fix in cause.fixes for step in fix.steps]
    if report.ruled_out and verbose:
        entries = (
            f"{entry.id} ({entry.why})" if entry.why else entry.id for entry in report.ruled_out
        )
        ruled_out.add(span("; ".join(entries)))
    for open_end in report.undecided:
        if any(open_end.would_settle.startswith(step) for step in steps):
            continue  # it is the first thing to do
        if open_end.id == "cannot-look":
            if _hides_something(report, open_end, verbose=verbose):
                not_seen.add(span(open_end.would_settle))
        elif verbose or not _is_settled(report):
            named = [] if open_end.id == UNKNOWN else [span(f"{open_end.id}:", "strong")]
            undecided.add(*named, span(open_end.would_settle))
    for says in report.unexplained:
        unexplained.add(span(says))
    if "sbatch" not in report.extra:  # the section of a script shows them with their lines
        for notice in report.warnings[:WARNINGS_CAP]:
            warnings.add(span(f"{notice.says} [{notice.fix}]" if notice.fix else notice.says))
        warnings.add_rest(len(report.warnings) - WARNINGS_CAP, "more in the JSON")
    blocks = (ruled_out, not_seen, undecided, unexplained, warnings)
    return [line for block in blocks for line in block.lines]


def _is_settled(report: Report) -> bool:
    """Whether each trouble has a cause that is likely: then nothing is undecided beside it."""
    found = first_causes(report)
    return bool(found) and all(cause.named and cause.confidence >= LIKELY for cause in found)


def _hides_something(report: Report, open_end: Undecided, *, verbose: bool) -> bool:
    """Whether a look that failed is worth a line: the answer hangs on it, a whole node was not
    seen, or all is wanted. That there are no GPUs hides nothing of a job whose ranks use none.
    """
    if is_in_checks(report, open_end.would_settle):
        return False
    if open_end.would_settle.startswith("node.look:"):
        return True
    if open_end.would_settle.startswith("gpus:") and not any(cause.gpus for cause in report.causes):
        return verbose and not has_ranks(report)
    return verbose or not (report.conclusive and (_is_settled(report) or _is_fine(report)))


def _is_fine(report: Report) -> bool:
    return report.verdict == "healthy"


def _footer(report: Report, width: int, *, verbose: bool) -> list[Line]:
    if not report.case:
        return []
    named = [span(report.case, "strong")]
    if not verbose and report.command in ("attach", "diagnose", "explain"):
        more = f"(more: trainprobe explain {shlex.quote(clean(report.case))} --verbose)"
        named.append(span(more, "faint"))
    return wrapped(named, width, first="case  ")
