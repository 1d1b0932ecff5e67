"""`trainprobe explain PATH…`: judge a saved case again, or the dumps that somebody saved, without touching the machine."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="The folder of a case, or files and folders with dumps of one job.")],
    case: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the case that is made of loose dumps; else it is temporary.")] = None,
    json_to: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the headline and the head of the first cause.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; the words are the same.")] = False,
) -> int:
    """Judge a saved case again, or the dumps that somebody saved of a job, and print the report.

    Of a case the report is identical to the first one, on any machine and without touching it. Dumps are those of
    torch's flight recorder (pickle or JSON) and stack dumps of py-spy, pystack, gdb and faulthandler; they are found
    by what is in them, and the rank by their names.

    \b
    Examples:
      trainprobe explain ./trainprobe-2026-11-21T00-10-node7 --json report.json
      trainprobe explain /tmp/nccl_trace_rank_* stacks/
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import code_of
    from trainprobe.cli.showing import check_json_target, show_report
    from trainprobe.pipelines import explain as judge

    check_json_target(json_to)
    report = judge(paths, case)
    show_report(report, json_to=json_to, quiet=quiet, no_color=no_color)
    return code_of(report.verdict, conclusive=report.conclusive)
