"""`trainprobe explain PATH…`: what is left of a job, or a saved case, judged without touching
the machine.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainprobe.cli.options import (
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    Quiet,
    ShareFile,
    Verbose,
    format_option,
    option,
)

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report
    from trainprobe.model.evidence import Evidence


def explain(  # noqa: PLR0913, PLR0917 - one parameter per option
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Logs, dumps, folders of them, globs, a case; - for stdin."
        ),
    ],
    since: Annotated[
        str | None,
        option("TIME", "Only what came after: 2026-11-21T10:30, or 30m, 2h before the last line."),
    ] = None,
    rank: Annotated[
        list[str] | None, option("RANKS", "Show these ranks only, as 3 or 0-3,7; may be repeated.")
    ] = None,
    max_events: Annotated[str | None, option("N", "Show at most N events of the timeline.")] = None,
    env: Annotated[
        list[str] | None,
        option("FILE", "The job's environment: env, ulimit -a, collect_env; may be repeated."),
    ] = None,
    nodes: Annotated[str | None, option("N", "Nodes of the job.")] = None,
    gpus: Annotated[str | None, option("N", "GPUs on each node.")] = None,
    against: Annotated[
        str | None,
        option("PATH", "A case or logs of an earlier run: say what is different since then."),
    ] = None,
    timeout: Annotated[
        str | None, option("S", "End the reading after S seconds and report what was read.")
    ] = None,
    case: Annotated[
        str | None, option("DIR", "Keep the case that is made; else it is temporary.")
    ] = None,
    format_name: Annotated[str | None, format_option("diagnosis")] = None,
    output_file: OutputFile = None,
    json_to: JsonFile = None,
    html_to: HtmlFile = None,
    share_to: ShareFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> int:
    """Say from what is left of a job who failed first, of what, and what to do; or judge a saved
    case again.

    Anything goes, in any mix and by any name, compressed or not: output of torchrun, slurm and
    frameworks, NCCL logs, tracebacks, error files, kernel logs, dumps of torch's flight recorder,
    py-spy, pystack, gdb and faulthandler.

    \b
    Examples:
      trainprobe explain slurm-1234.out logs/ /tmp/comm_lib_trace_rank_*
      kubectl logs trainer-0 | trainprobe explain -
      trainprobe explain logs/ --env env.txt --nodes 4 --gpus 8 --since 30m
      trainprobe explain ./trainprobe-2026-11-21T00-10-node7 --json report.json
      trainprobe explain ./broken --against ./when-it-worked
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.arguments import rank_list, seconds, whole_number
    from trainprobe.cli.exit_codes import code_of
    from trainprobe.cli.live_reading import reading
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.model.request import ExplainRequest

    output = output_of(
        "diagnosis",
        format_name,
        output_file,
        json_to,
        html_to=html_to,
        quiet=quiet,
        share_to=share_to,
        no_color=no_color,
        verbose=verbose,
    )
    request = ExplainRequest(
        paths=tuple(paths),
        since=since or "",
        ranks=rank_list("--rank", rank or ()),
        max_events=whole_number("--max-events", max_events, 100_000),
        env_files=tuple(env or ()),
        nodes=whole_number("--nodes", nodes, 100_000),
        gpus=whole_number("--gpus", gpus),
        timeout_s=seconds("--timeout", timeout),
        case=case,
        argv=("trainprobe", "explain", *paths),
    )
    from trainprobe.pipelines import compare
    from trainprobe.pipelines import explain as judge

    evidence: list[Evidence] = []
    with reading(quiet=quiet) as progress:
        if against is None:
            report = judge(request, None, progress, evidence)
        else:
            report = compare(request, against, progress, evidence)
    _warn_of_inputs(report)
    write_result(output, report, evidence)
    interrupted = report.command == "explain" and report.extra.get("interrupted") is True
    code = code_of(report.verdict, conclusive=report.conclusive, interrupted=interrupted)
    return output.exit_code(report, code)


def _warn_of_inputs(report: Report) -> None:
    """Name on stderr what was given and could not be read; the rest was explained without it."""
    from trainprobe.report.phrases import clean

    for entry in report.undecided:
        kind, _, says = entry.would_settle.partition(": ")
        if entry.id == "cannot-look" and kind in ("given", "input"):
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"trainprobe: Warning: {clean(says)}\n")
