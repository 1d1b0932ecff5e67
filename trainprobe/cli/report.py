"""`trainprobe report CASE`: a saved case as a page for a browser."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from trainprobe.cli.options import JsonFile, NoColor, Quiet, flag, option

if TYPE_CHECKING:
    from trainprobe.model.evidence import Evidence

PAGE = "report.html"


def report(  # noqa: PLR0917 - one parameter per option
    case: Annotated[
        str, typer.Argument(metavar="CASE", help="The folder of a case.", show_default=False)
    ],
    html_to: Annotated[
        str | None,
        option("FILE", f"Where the page goes; {PAGE} in the case by default.", "--html"),
    ] = None,
    against: Annotated[
        str | None, option("CASE", "An earlier case: say what changed since then.")
    ] = None,
    json_to: JsonFile = None,
    open_it: Annotated[
        bool, flag("Show the page in the browser of this machine.", "--open")
    ] = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> int:
    """Write the page of a saved case: one file with the answer, drawings and the evidence behind
    them, which needs no network and can be attached to a ticket.

    The case is judged again, so that the page knows what this version knows.

    \b
    Examples:
      trainprobe report ./trainprobe-2026-11-21T00-10-node7
      trainprobe report ./trainprobe-2026-11-21T00-10-node7 --html page.html --open
      trainprobe report ./after --against ./before
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import code_of_report
    from trainprobe.cli.live_reading import reading
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.errors import UsageError
    from trainprobe.pipelines import compare, explain
    from trainprobe.report.comparison_section import against_of
    from trainprobe.report.phrases import clean
    from trainprobe.saved_case import META
    from trainprobe.system.browser import open_page

    for folder in (case, against) if against is not None else (case,):
        if not os.path.isfile(os.path.join(folder, META)):
            raise UsageError(f"{folder} is not a case.", "Name a folder that trainprobe made.")
    page = os.path.join(case, PAGE) if html_to is None else html_to
    output = output_of(
        "diagnosis",
        json_to=json_to,
        html_to=page,
        quiet=True,  # the page holds the rest
        no_color=no_color,
    )
    evidence: list[Evidence] = []
    with reading(quiet=quiet) as progress:
        if against is None:
            found = explain(case, None, progress, evidence)
        else:
            found = compare(case, against, progress, evidence)
    write_result(output, found, evidence)
    if output.stdout.name == "text":
        since = against_of(found)
        for sentence in since.sentences if since is not None else ():
            typer.echo(f"since {against}: {clean(sentence)}")
        typer.echo(f"page  {page}")
    if open_it and page != "-" and not open_page(page):
        raise UsageError(
            "There is no browser to open the page with.", f"Open {os.path.abspath(page)} yourself."
        )
    return code_of_report(found)
