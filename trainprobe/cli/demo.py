"""`trainprobe demo [NAME]`: a broken job on this machine, and what the tool says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trainprobe.cli.options import (
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    Quiet,
    Verbose,
    format_option,
    option,
)

if TYPE_CHECKING:
    from trainprobe.cli.output import Output
    from trainprobe.demo.jobs import DemoJob
    from trainprobe.model.diagnosis import Report
    from trainprobe.model.evidence import Evidence
    from trainprobe.targets.interpreter import Interpreter

CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own index of builds without CUDA


def demo(  # noqa: PLR0913, PLR0917 - one parameter per option
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The job to start; without it they are listed.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[
        str | None, option("PATH", "The Python that has torch. [default: the one of your shell]")
    ] = None,
    case: Annotated[
        str | None, option("DIR", "Keep the evidence there; else it goes with the job.")
    ] = None,
    format_name: Annotated[str | None, format_option("diagnosis")] = None,
    output_file: OutputFile = None,
    json_to: JsonFile = None,
    html_to: HtmlFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> int:
    """Start a small training job that hangs, show what its user would see, and attach to it.

    It needs torch, no GPU, and some 20 seconds: half of them until torch is imported, half because
    nothing is called hung before it has waited for ten.
    Whatever it starts ends with it, also after Ctrl-C.
    Exit code: 0 where the answer was the expected one, 3 where it was not, 2 where the job could
    not be started.

    \b
    Examples:
      trainprobe demo
      trainprobe demo file-lock-held
      trainprobe demo file-lock-held --html answer.html
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import HEALTHY, UNDETERMINED
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.demo.jobs import job_called, jobs
    from trainprobe.targets import interpreter

    output = output_of(
        "diagnosis",
        format_name,
        output_file,
        json_to,
        html_to=html_to,
        quiet=quiet,
        no_color=no_color,
        verbose=verbose,
    )
    tell = _teller(output)
    if name is None:
        tell("\n".join(_listing(jobs(), interpreter.find(python))))
        return HEALTHY
    job = job_called(name)
    found = interpreter.find(python)
    _check(job, found)
    evidence: list[Evidence] = []
    report = _shown(job, found.path, case, tell, evidence)
    write_result(output, report, evidence)
    tell("\n".join(_closing(job, report)))
    return HEALTHY if _as_expected(job, report) else UNDETERMINED


def _teller(output: Output) -> Callable[[str], None]:
    """The story goes where the text goes."""
    from trainprobe.cli.output import to_a_reader

    stream = output.text_stream()

    def tell(text: str) -> None:
        if stream is not None and text:
            with to_a_reader(stream):
                stream.write(f"{text}\n")
                stream.flush()

    return tell


def _listing(known: tuple[DemoJob, ...], found: Interpreter) -> list[str]:
    from trainprobe.report.lines import Span, plain, wrapped

    width = max(len(job.name) for job in known) + 2
    lines = ["Jobs that hang, or seem to. Each runs here for some 20 seconds, without a GPU:", ""]
    for job in known:
        missing = job.missing(found.installed)
        longer = (
            f" (Longer, up to 30 seconds: each rank imports {job.needs[0]}.)" if job.needs else ""
        )
        note = f" (Needs {' and '.join(missing)}: not in {found.path}.)" if missing else longer
        start = f"  {job.name:<{width}}"
        lines += [plain(line) for line in wrapped([Span(job.about + note)], 100, first=start)]
    if found.reason:
        lines += ["", f"None can be started now: {found.reason}."]
    return [*lines, "", "Start one: trainprobe demo file-lock-held"]


def _check(job: DemoJob, found: Interpreter) -> None:
    """Raise UsageError where this Python cannot run the job."""
    from trainprobe.errors import UsageError

    if found.reason:
        raise UsageError(
            f"The demo starts a job of torch, and {found.reason}.",
            "The small build without CUDA is enough:"
            f" {found.path} -m pip install torch --index-url {CPU_INDEX}",
        )
    missing = job.missing(found.installed)
    if missing:
        raise UsageError(
            f"{job.name} needs {' and '.join(missing)}, which {found.path} does not have.",
            "Take one of the others: trainprobe demo.",
        )


def _shown(
    job: DemoJob,
    python: str,
    case: str | None,
    tell: Callable[[str], None],
    evidence: list[Evidence],
) -> Report:
    """Start the job, tell its log, look at it, and return the report."""
    import os
    from dataclasses import replace

    from trainprobe.demo.stage import command_of, hung_job
    from trainprobe.model.progress import Silence
    from trainprobe.model.request import AttachRequest
    from trainprobe.pipelines import attach, make_ready_to_judge
    from trainprobe.report.phrases import clean
    from trainprobe.system.interruption import Interrupted

    def said(line: str) -> None:
        shown = clean(line.rpartition("\r")[2])
        tell(f"  {shown[:96]}" if shown else "")

    tell(f"{job.about}\nIts first line takes some seconds: each rank imports torch.")
    tell(f"\n$ {command_of(job)}")
    try:
        with hung_job(job, python, said=said, meanwhile=make_ready_to_judge) as hung:
            tell(f"  (Nothing more for {hung.still_s:.0f} s. Its log tells no more than that.)\n")
            tell(f"$ trainprobe attach {hung.pid}")
            request = AttachRequest(
                pid=hung.pid,
                case=case or os.path.join(os.path.dirname(hung.folder), "case"),
                argv=("trainprobe", "attach", str(hung.pid)),
            )
            report = attach(request, Silence(), evidence=evidence)
    except Interrupted:
        raise KeyboardInterrupt from None
    return report if case else replace(report, case="")


def _as_expected(job: DemoJob, report: Report) -> bool:
    from trainprobe.report.text import first_causes

    if not job.cause:
        return report.verdict == "healthy"
    return any(cause.id == job.cause and cause.named for cause in first_causes(report))


def _closing(job: DemoJob, report: Report) -> list[str]:
    from trainprobe.report.lines import Span, plain, wrapped

    if _as_expected(job, report):
        says = [job.moral]
    else:
        expected = job.cause or "that the job is healthy"
        says = [f"Expected was {expected}. What hides it here, this tells: trainprobe doctor"]
    lines = [plain(line) for text in says for line in wrapped([Span(text)], 100)]
    return [
        "",
        *lines,
        "All processes of this demo were ended. For a job of yours: trainprobe attach",
        f"As a page to pass on: trainprobe demo {job.name} --html answer.html",
    ]
