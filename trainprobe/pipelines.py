"""The plot of the book: gather evidence into a case, judge it, write the report. The only place that sees both towers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from trainprobe.model.diagnosis import Report, Tool

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.config import Settings
    from trainprobe.model.evidence import Evidence
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import DiagnoseRequest

# The year 5138: a damaged case may hold any number as a time, also infinity.
_LAST_MOMENT = 1e11


def diagnose(request: DiagnoseRequest, settings: Settings, progress: Progress) -> Report:
    """Climb the ladder and say what it shows.

    Raises UsageError before anything is started where the request cannot be carried out. Ctrl-C ends the climb, not the report.
    """
    from trainprobe.case import Case
    from trainprobe.ladder import Interrupted, climb, make_plan

    plan = make_plan(request, settings)
    case = Case.create(request.case, "diagnose", request.argv)
    try:
        climb(plan, case, progress, settings)
    except Interrupted:
        progress.note("Interrupted: everything was stopped, and this is what was learnt.")
    report = conclude(case.evidence, "diagnose", case.name, (case.trouble,) if case.trouble else ())
    return _kept(case, report)


def explain(folder: str) -> Report:
    """Judge a saved case again. Raises UsageError where `folder` is not a case."""
    from trainprobe.case import read_case

    saved = read_case(folder)
    report = conclude(saved.evidence, str(saved.meta.get("command") or "diagnose"), str(saved.meta.get("case") or folder), saved.damage)
    made_by = saved.meta.get("tool")
    return replace(report, tool=Tool("trainprobe", str(made_by["version"]))) if isinstance(made_by, dict) and "version" in made_by else report


def conclude(evidence: Iterable[Evidence], command: str, case: str, notes: Iterable[str] = ()) -> Report:
    """Facts, graph, causes, ranking, report: pure, so that the same evidence always gives the same report."""
    from trainprobe import causes, plugins
    from trainprobe.causes.priors import load_priors
    from trainprobe.facts import read
    from trainprobe.judge import judge
    from trainprobe.report.json_report import report_of

    records = tuple(evidence)
    added = plugins.causes(known={cause.id for cause in causes.built()})
    diagnosis = judge(read(records), (*causes.built(), *added.causes), load_priors(), (*notes, *added.trouble))
    diagnosis = replace(diagnosis, unexplained=(*diagnosis.unexplained, *added.failures))
    looks = [(record.began, record.began + record.took_s) for record in records if 0 < record.began < _LAST_MOMENT and 0 <= record.took_s < _LAST_MOMENT]
    began, ended = min((look[0] for look in looks), default=0.0), max((look[1] for look in looks), default=0.0)
    return report_of(diagnosis, command=command, case=case, looked_s=round(max(0.0, ended - began), 1))


def _kept(case: Case, report: Report) -> Report:
    """Write the derived files, which can be deleted and made again from the evidence."""
    from trainprobe.report.json_report import report_text
    from trainprobe.report.text import text_of

    case.write_derived("diagnosis.json", report_text(report))
    case.write_derived("report.txt", text_of(report))
    return report
