"""The report in words: the canonical form. Colour, pages and terminals add to it and never
change it.
"""

from __future__ import annotations

from trainprobe.model.diagnosis import LadderRow, PlacedCause, Report
from trainprobe.model.ranks import fold_ranks, name_ranks
from trainprobe.report.cause_section import cause_lines
from trainprobe.report.ladder_section import ladder_lines
from trainprobe.report.lines import Line, Span, Style, plain, span, wrapped
from trainprobe.report.live_section import (
    has_ranks,
    header_parts,
    rank_lines,
    time_lines,
    tree_lines,
)
from trainprobe.report.log_section import log_lines
from trainprobe.report.matrix_section import climb_sentence, matrix_lines
from trainprobe.report.phrases import duration
from trainprobe.report.prediction_section import prediction_lines
from trainprobe.report.readiness_section import readiness_lines, readiness_of, told_already
from trainprobe.report.sbatch_section import sbatch_lines
from trainprobe.report.suite_section import suite_lines

WIDTH = 100
NARROWEST = 60
WARNINGS_CAP = 6
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


def text_of(report: Report, width: int = WIDTH) -> str:
    """Return the report as text of at most `width` columns (60 to 100), with a final newline."""
    return "".join(f"{plain(line)}\n" for line in report_lines(report, width))


def quiet_text_of(report: Report, width: int = WIDTH) -> str:
    """Return what `--quiet` leaves: the headline, and of each suspect group the first cause and
    the first thing to do.
    """
    return "".join(f"{plain(line)}\n" for line in quiet_lines(report, width))


def report_lines(report: Report, width: int = WIDTH) -> list[Line]:
    """Return the whole report as styled lines."""
    width = max(NARROWEST, min(width, WIDTH))
    blocks = [_where(report, width), [*headline(report, width), *climb_sentence(report, width)]]
    blocks += [
        matrix_lines(report, width),
        ladder_lines(_as_given(report), width, brief=report.verdict != "healthy"),
        suite_lines(_as_given(report), width),
    ]
    blocks += [
        cause_lines(first, place, width, others=others)
        for place, first, others in _places(report.causes)
    ]
    blocks += [
        sbatch_lines(report, width) or readiness_lines(report, width),
        _victims(report, width),
        prediction_lines(report, width),
        log_lines(report, width),
    ]
    if has_ranks(report):
        blocks += [
            [
                *rank_lines(report, width),
                *(tree_lines(report, width) if report.verdict != "healthy" else []),
            ],
            time_lines(report, width),
        ]
    blocks += [_open_ends(report, width), _footer(report, width)]
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [EMPTY, *block] if lines else block
    return lines


def _as_given(report: Report) -> tuple[LadderRow, ...]:
    """The rows of the ladder without the cells in which a knob was changed: these stand below
    the matrix.
    """
    knobs = (
        {cell.cell for cell in report.climb.cells if cell.knob}
        if report.climb is not None
        else set()
    )
    ready = bool(readiness_of(report))  # which asks for a few rungs: the others are none of its own
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
    waited_s = max(
        [row.since_s for row in report.world.ranks if row.state == "waiting" and row.since_s],
        default=0.0,
    )
    if report.verdict == "hung" and waited_s >= WORTH_SAYING_S:
        verdict += f" for {duration(waited_s)}"
    says = (
        report.says
        or " ".join(suspect.says for suspect in report.suspects)
        or _nothing_said(report)
    )
    lines = wrapped(
        [span(f"{verdict}.", VERDICT_STYLE[report.verdict]), span(says, "strong")], width
    )
    if not report.conclusive and report.verdict != "undetermined":
        lines += wrapped(
            [
                span(
                    "Not conclusive: something that could have changed this verdict was not seen.",
                    "warn",
                )
            ],
            width,
        )
    return lines


def _nothing_said(report: Report) -> str:
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
        parts.append(
            f"{size} on {hosts[0] if len(hosts) == 1 else f'{len(hosts)} hosts'}" if hosts else size
        )
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
    lines: list[Line] = []
    for cascade in report.cascade:
        because = (
            report.causes[cascade.because_of].id
            if 0 <= cascade.because_of < len(report.causes)
            else ""
        )
        who = name_ranks(cascade.ranks)
        says = cascade.says or f"carry no blame: they suffer from {because}"
        repeats = who.lower() in says.lower() or fold_ranks(cascade.ranks) in says
        lines += wrapped(
            [*([] if repeats else [span(f"{who}:")]), span(says)],
            width,
            first="victims  " if not lines else "         ",
        )
    return lines


def _open_ends(report: Report, width: int) -> list[Line]:
    lines: list[Line] = []
    if report.ruled_out:
        ruled = [
            f"{entry.id} ({entry.why})" if entry.why else entry.id for entry in report.ruled_out
        ]
        lines += wrapped([span("; ".join(ruled))], width, first="ruled out  ")
    label = "could not look  "
    for entry in report.undecided:
        if entry.id == "cannot-look" and not told_already(report, entry.would_settle):
            lines += wrapped([span(entry.would_settle)], width, first=label)
            label = " " * len(label)
    label = "undecided  "
    for entry in report.undecided:
        if entry.id != "cannot-look":
            lines += wrapped(
                [span(f"{entry.id}:", "strong"), span(entry.would_settle)], width, first=label
            )
            label = " " * len(label)
    label = "unexplained  "
    for says in report.unexplained:
        lines += wrapped([span(says)], width, first=label)
        label = " " * len(label)
    label = "warning  "
    for notice in (
        report.warnings[:WARNINGS_CAP] if "sbatch" not in report.extra else ()
    ):  # of a script they stand with their lines
        lines += wrapped(
            [span(f"{notice.says} [{notice.fix}]" if notice.fix else notice.says)],
            width,
            first=label,
        )
        label = " " * len(label)
    if len(report.warnings) > WARNINGS_CAP and "sbatch" not in report.extra:
        lines += wrapped(
            [span(f"and {len(report.warnings) - WARNINGS_CAP} more in the JSON", "faint")],
            width,
            first=label,
        )
    return lines


def _footer(report: Report, width: int) -> list[Line]:
    return wrapped([span(report.case, "strong")], width, first="case  ") if report.case else []
