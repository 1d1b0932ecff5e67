"""`trainprobe explain CASE`: judge a saved case again, without touching the machine."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    case: Annotated[str, typer.Argument(metavar="CASE", help="The folder that an earlier run wrote.")],
    json_to: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the headline and the head of the first cause.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; the words are the same.")] = False,
) -> int:
    """Judge a saved case again and print its report.

    The report is identical to the first one, on any machine and without touching it.

    \b
    Example:
      trainprobe explain ./trainprobe-2026-11-21T00-10-node7 --json report.json
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import code_of
    from trainprobe.cli.showing import check_json_target, show_report
    from trainprobe.pipelines import explain as judge

    check_json_target(json_to)
    report = judge(case)
    show_report(report, json_to=json_to, quiet=quiet, no_color=no_color)
    return code_of(report.verdict, conclusive=report.conclusive)
