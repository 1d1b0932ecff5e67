"""`trainprobe lint PATH...`: reading training code for what will hang or crash it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from trainprobe.lint.telling import Told


def lint(  # noqa: PLR0913, PLR0917 - typer's options
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Python files, notebooks, or folders of them.", show_default=False)],
    json_to: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON; - for stdout.", show_default=False)] = None,
    sarif_to: Annotated[str | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0; - for stdout.", show_default=False)] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the rewrites that are safe.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --fix changes; without --fix nothing is written.")] = False,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="IDS", help="Only these causes or rules, with commas between.", show_default=False)
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="IDS", help="All but these causes or rules.", show_default=False)] = None,
    cpus: Annotated[int | None, typer.Option("--cpus", min=1, help="CPUs of a node of the job: its loaders are held against them.", show_default=False)] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", min=1, help="Ranks of the job on a node.", show_default=False)] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour, on a terminal either.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="One line per finding, and per file that could not be read.")] = False,
) -> int:
    """Read training code, without running it, for patterns that will hang or crash a job.

    \b
    A comment `# trainprobe: ignore[ID]` on a line, or above it, waives a finding.
    Exit code: 0 nothing found, 1 findings, 2 usage, 3 nothing found, but a file could not be read, or not by all rules.

    \b
    Examples:
      trainprobe lint train.py
      trainprobe lint src/ --diff
      trainprobe lint src/ --fix
      trainprobe lint train.py --cpus 64 --ranks 8
      trainprobe lint . --sarif findings.sarif
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe import __version__
    from trainprobe.cli.exit_codes import HEALTHY, ILL, UNDETERMINED
    from trainprobe.cli.linting import check_paths, ids_given, look
    from trainprobe.cli.showing import check_json_target
    from trainprobe.errors import UsageError
    from trainprobe.lint.running import all_rules
    from trainprobe.lint.telling import as_json, as_sarif

    check_paths(paths)
    if json_to == "-" and sarif_to == "-":
        raise UsageError("--json - and --sarif - cannot both be stdout.", "Write one of them to a file.")
    check_json_target(json_to)
    check_json_target(sarif_to)
    told, diffs = look(paths, select=ids_given(select), ignore=ids_given(ignore), fix=fix, diff=diff, cpus=cpus, ranks=ranks)
    if json_to is not None:
        _write(json_to, as_json(told))
    if sarif_to is not None:
        _write(sarif_to, as_sarif(told, all_rules(), __version__))
    _show(told, diffs, to_stderr="-" in (json_to, sarif_to), no_color=no_color, quiet=quiet)
    return ILL if told.findings else HEALTHY if told.complete else UNDETERMINED


def _write(target: str, text: str) -> None:
    from trainprobe.cli.showing import to_a_reader

    if target == "-":
        with to_a_reader(sys.stdout):
            sys.stdout.write(text)
            sys.stdout.flush()
        return
    try:
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"trainprobe: {target} was not written: {error.strerror}.\n")


def _show(told: Told, diffs: list[str], *, to_stderr: bool, no_color: bool, quiet: bool) -> None:
    from trainprobe.cli.showing import to_a_reader
    from trainprobe.lint.telling import as_lines
    from trainprobe.report.terminal import wants_colour

    if to_stderr and quiet:
        return
    stream = sys.stderr if to_stderr else sys.stdout
    colour = wants_colour(stream, os.environ, asked_not=no_color)
    with to_a_reader(stream):
        for one in diffs:
            stream.write(one)
        for line in as_lines(told, colour=colour, quiet=quiet):
            stream.write(line + "\n")
        stream.flush()
