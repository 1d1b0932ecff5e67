"""What each command does: gather evidence into a case, judge it, write the report. Only this module
imports both what gathers and what judges.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trainprobe.model.diagnosis import Report, Tool
from trainprobe.model.evidence import LAST_MOMENT

if TYPE_CHECKING:
    from trainprobe.attach.discovery import Choose
    from trainprobe.case import Case
    from trainprobe.config import Settings
    from trainprobe.logs.finding import Found
    from trainprobe.model.evidence import Evidence
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import (
        AttachRequest,
        DiagnoseRequest,
        ExplainRequest,
        ReadyRequest,
        RunRequest,
    )
    from trainprobe.supervise.watched import Watched


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Evidence and facts stay until the report and have no cycles: to walk over all of them again
    and again takes a third of the time of thousands of ranks.
    """
    import gc

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def diagnose(request: DiagnoseRequest, settings: Settings, progress: Progress) -> Report:
    """Climb the ladder and report what it shows.

    Raises UsageError before anything is started where the request cannot be carried out. Ctrl-C
    ends the climb, not the report.
    """
    from trainprobe.case import Case
    from trainprobe.ladder.climb import climb
    from trainprobe.ladder.planning import make_plan
    from trainprobe.system.interruption import Interrupted

    plan = make_plan(request, settings)
    case = (
        Case.create(request.case, "diagnose", request.argv)
        if request.resume is None
        else Case.reopen(request.resume)
    )
    try:
        climb(plan, case, progress, settings)
    except Interrupted:
        progress.note("Interrupted: everything was stopped, and this is what was learnt.")
    report = _concluded(case, case.evidence, "diagnose", case.name)
    return _kept(case, report)


def attach(
    request: AttachRequest,
    progress: Progress,
    choose: Choose | None = None,
    evidence: list[Evidence] | None = None,
) -> Report:
    """Look at a live job and report what it waits for.

    Of several jobs `choose` picks one. `evidence` is filled with what was seen on this host. Raises
    UsageError before it looks at anything if there is no such job. Ctrl-C ends the look, not the
    report.
    """
    from trainprobe.attach import Interrupted, find_target, look_at_job, look_deeper
    from trainprobe.case import Case

    if request.slurm or request.hosts or request.kubectl:
        return _attach_far(request, progress)
    began = time.monotonic()
    limits = (request.timeout_s,) if request.timeout_s else ()
    job = find_target(request.pid, choose, progress, *limits)
    case = Case.create(_answering_place(request.case, progress), "attach", request.argv)
    try:
        look_at_job(job, case, request, progress, meanwhile=make_ready_to_judge, began=began)
        if request.deep_if_open and _deep_would_settle(case):
            within_s = began + request.timeout_s - time.monotonic() if request.timeout_s else None
            look_deeper(job, case, progress, within_s=within_s)
    except Interrupted:
        progress.note("Interrupted: this is what was learnt.")
    records = case.seal()
    if evidence is not None:
        evidence.extend(records)
    return _kept(case, _concluded(case, records, "attach", case.name))


def _answering_place(asked: str | None, progress: Progress) -> str | None:
    """Where the case goes: as asked, unless the file system of this folder is the one that gives
    no answer. Raises UsageError where a folder was asked for that lies there.
    """
    import tempfile

    from trainprobe.case import ANOTHER
    from trainprobe.errors import UsageError
    from trainprobe.system.answering import silent

    silence = silent(asked or ".")
    if not silence:
        return asked
    if asked:
        raise UsageError(f"The case folder {asked} cannot be made: {silence}.", ANOTHER)
    folder = tempfile.mkdtemp(prefix="trainprobe-case-")
    progress.note(f"The case is kept in {folder}: {silence}.")
    return folder


def _deep_would_settle(case: Case) -> bool:
    """Whether what was seen so far leaves open what a look inside the ranks would tell."""
    report = conclude(case.evidence, "attach", case.name)
    return bool(report.extra.get("deep_would_settle"))


@_no_garbage_collection()
def _attach_far(request: AttachRequest, progress: Progress) -> Report:
    """Look at every node of a job, and write one report about all of them."""
    from trainprobe.attach import Interrupted
    from trainprobe.attach.nodes import Nodes
    from trainprobe.case import Case

    nodes = Nodes(request)
    case = Case.create(_answering_place(request.case, progress), "attach", request.argv)
    try:
        nodes.look(case, progress)
    except Interrupted:
        progress.note("Interrupted: this is what was learnt.")
    report = _concluded(case, case.give_away(), "attach", case.name)
    return _kept(case, report)


def ready(request: ReadyRequest, settings: Settings, progress: Progress) -> Report:
    """Check the nodes of a job before it starts and say whether they are ready, and if not who must
    act.

    Raises UsageError before anything is started where the request cannot be carried out. Ctrl-C
    ends the checks, not the report.
    """
    import threading

    from trainprobe.ready.case_folders import case_for
    from trainprobe.ready.gathering import check_request, gather, tell_findings
    from trainprobe.ready.node_selection import way_to_nodes
    from trainprobe.site import read_site
    from trainprobe.system.interruption import Interrupted, Interruption
    from trainprobe.system.overseer import tell

    check_request(request)
    site = read_site()
    site.refuse(request.budget, os.getuid())
    way = way_to_nodes(request)
    # Load the judge while the nodes work.
    threading.Thread(target=make_ready_to_judge, name="trainprobe-judge", daemon=True).start()
    # An interruption between two looks or during the judgement loses nothing either.
    with Interruption() as interruption, case_for(request) as (case, name):
        tell(case=name)
        tell(count=len(way.names), nodes=list(way.names)[:64], budget=request.budget)
        tell(scheduler=way.scheduler)
        case.heard = tell_findings
        try:
            gather(request, way, case, site, settings, progress, around=interruption)
        except Interrupted:
            progress.note("Interrupted: this is what was learnt.")
        tell(doing="judging what was found")
        trouble = (case.trouble,) if case.trouble and name else ()
        report = conclude(case.seal(), "ready", name, (*trouble, *site.notes))
        if interruption.asked:  # also during the judgement: then nothing may be started afterwards
            report = replace(report, extra={**report.extra, "interrupted": True})
        return _kept(case, report)


def run(request: RunRequest) -> Watched:
    """Run a command as if we were not there, report when it stalls or fails, and return how it
    ended.

    Raises UsageError or CannotStart before anything is started where that cannot be done. Call it
    before there are threads.
    """
    from trainprobe.supervise.session import Session
    from trainprobe.system.first_process import stand_before

    with Session(request, stand_before()) as session:
        watched = session.watch()
        case = session.case_of_the_end() if session.failed else None
        if case is not None:
            from trainprobe.model.codec import to_json
            from trainprobe.report.text import text_of

            report = _kept(case, _concluded(case, case.seal(), "run", case.name))
            session.tell_of_the_end(to_json(report), text_of(report))
    return watched


@_no_garbage_collection()
def explain(
    asked: ExplainRequest | str | Sequence[str],
    case: str | None = None,
    progress: Progress | None = None,
    evidence: list[Evidence] | None = None,
) -> Report:
    """Judge a saved case again, or make a case from what a job left behind (logs, dumps, error
    files) and judge that.

    `case` is the folder of the new case; None means a temporary one. `evidence` is filled with what
    was judged. Raises UsageError if there is nothing to judge.
    """
    from trainprobe.case import Case
    from trainprobe.errors import UsageError
    from trainprobe.logs.finding import find_inputs
    from trainprobe.model.progress import Silence
    from trainprobe.model.request import ExplainRequest
    from trainprobe.system.working_folders import working_folder

    if not isinstance(asked, ExplainRequest):
        paths = (asked,) if isinstance(asked, str) else tuple(asked)
        asked = ExplainRequest(paths=paths, case=case, argv=("trainprobe", "explain", *paths))
    found = find_inputs(asked.paths)
    listener = progress or Silence()
    adds = found.files or found.unread or asked.env_files or asked.nodes or asked.gpus
    if len(found.cases) == 1 and not adds:
        if asked.case is not None:
            raise UsageError(
                f"{found.cases[0]} is a case already.",
                "--case says where a case is made of loose files; leave it out.",
            )
        return _explain_case(found.cases[0], listener, evidence)
    if asked.case is None:
        with (
            working_folder() as folder,
            Case.create(os.path.join(folder, "case"), "explain", asked.argv) as made,
        ):
            return _explain_found(asked, found, made, "", listener, evidence)
    with Case.create(asked.case, "explain", asked.argv) as made:
        return _kept(made, _explain_found(asked, found, made, made.name, listener, evidence))


def compare(
    asked: ExplainRequest | str,
    against: str,
    progress: Progress | None = None,
    evidence: list[Evidence] | None = None,
) -> Report:
    """Judge two runs, and return the report of the first with what changed since the second, which
    is a case, a log or a folder of them.
    """
    from trainprobe.facts import read
    from trainprobe.facts.run_values import run_values
    from trainprobe.report.comparison import with_comparison

    records: list[Evidence] = []
    earlier_records: list[Evidence] = []
    report = explain(asked, None, progress, records)
    earlier = explain(against, None, progress, earlier_records)
    if evidence is not None:
        evidence.extend(records)
    before, after = (run_values(read(found)) for found in (earlier_records, records))
    return with_comparison(earlier, report, before, after, against)


def _explain_found(
    asked: ExplainRequest,
    found: Found,
    case: Case,
    name: str,
    progress: Progress,
    evidence: list[Evidence] | None,
) -> Report:
    """Gather earlier cases, dumps and logs into one case. Ctrl-C ends the reading, not the
    report.
    """
    from trainprobe.logs.gathering import gather

    gather(case, asked, found, progress)
    records = case.seal()
    if evidence is not None:
        evidence.extend(records)
    with _judging(progress):
        return _concluded(case, records, "explain", name)


@contextlib.contextmanager
def _judging(progress: Progress) -> Iterator[None]:
    """Show how long the judgement has taken once it takes more than a second. A thread shows it:
    the judgement runs in one go.
    """
    import threading

    make_ready_to_judge()  # the time of the imports does not count
    over = threading.Event()

    def speak() -> None:
        took_s = 0
        while not over.wait(1.0):
            took_s += 1
            progress.note(f"Judging what was found: {took_s} s")

    speaker = threading.Thread(target=speak, name="trainprobe-judging", daemon=True)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join(1.0)
        progress.note("")


def _explain_case(folder: str, progress: Progress, evidence: list[Evidence] | None) -> Report:
    from trainprobe.saved_case import read_case

    with _judging(progress):
        saved = read_case(folder)
        if evidence is not None:
            evidence.extend(saved.evidence)
        report = conclude(
            saved.evidence,
            str(saved.meta.get("command") or "diagnose"),
            str(saved.meta.get("case") or folder),
            saved.damage,
        )
    made_by = saved.meta.get("tool")
    if not isinstance(made_by, dict) or "version" not in made_by:
        return report
    return replace(report, tool=Tool("trainprobe", str(made_by["version"])))


def conclude(
    evidence: Iterable[Evidence], command: str, case: str, notes: Iterable[str] = ()
) -> Report:
    """Judge the evidence. Pure: the same evidence always gives the same report."""
    from trainprobe import causes, plugins
    from trainprobe.causes.priors import load_priors
    from trainprobe.collect import collector as collectors
    from trainprobe.facts import read
    from trainprobe.judge import judge
    from trainprobe.report.json_report import report_of

    records = list(evidence)
    looked_s = round(_looked_s(records), 1)
    added = plugins.causes(known={cause.id for cause in causes.built()})
    failures: list[str] = []
    # A fault in one cause must not cost the report.
    built = [plugins.guarded(cause, failures) for cause in causes.built()]
    left_out = [
        str(says)
        for record in records
        if record.kind == "log.trouble"
        for says in _listed(record.data.get("says"))
    ]
    diagnosis = judge(
        read(_given_away(records)),
        (*built, *added.found),
        load_priors(),
        (*left_out, *notes, *collectors.added().trouble, *added.trouble),
    )
    diagnosis = replace(diagnosis, unexplained=(*diagnosis.unexplained, *failures, *added.failures))
    return report_of(diagnosis, command=command, case=case, looked_s=looked_s)


def _given_away(records: list[Evidence]) -> Iterator[Evidence]:
    """The records one by one, which then are nobody's but the reader's."""
    records.reverse()
    while records:
        yield records.pop()


def _concluded(case: Case, evidence: Iterable[Evidence], command: str, name: str) -> Report:
    """Judge an open case; the report names what could not be saved of it."""
    return conclude(evidence, command, name, (case.trouble,) if case.trouble else ())


def _looked_s(records: Sequence[Evidence]) -> float:
    """The time from the first look to the end of the last one, without the pauses of a climb that
    was resumed. A stack that somebody saved earlier took us no time, and is as old as its file.
    """
    parts: list[list[tuple[float, float]]] = [[]]
    for record in records:
        if record.kind == "resumed":
            parts.append([])
        if record.kind.startswith("stacks.") and not record.took_s:
            continue
        if 0 < record.began < LAST_MOMENT and 0 <= record.took_s < LAST_MOMENT:
            parts[-1].append((record.began, record.began + record.took_s))
    return sum(
        max(ended for _, ended in part) - min(began for began, _ in part) for part in parts if part
    )


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def make_ready_to_judge() -> None:
    """Import the modules that judge, while we wait for the job or the nodes."""
    import importlib

    from trainprobe import causes, plugins
    from trainprobe.causes.priors import load_priors

    for module in ("trainprobe.judge", "trainprobe.report.json_report", "trainprobe.report.text"):
        importlib.import_module(module)
    plugins.causes(known={cause.id for cause in causes.built()})
    load_priors()


def _kept(case: Case, report: Report) -> Report:
    """Write the files that are derived from the evidence: they can be made again."""
    from trainprobe.report.json_report import report_text
    from trainprobe.report.text import text_of

    case.write_derived("diagnosis.json", report_text(report))
    case.write_derived("report.txt", text_of(report))
    return report
