"""`trainprobe lint PATH...`: reading training code for what will hang or crash it."""

from __future__ import annotations

from typing import Annotated

import typer

from trainprobe.cli.options import JsonFile, NoColor, OutputFile, format_option


def lint(  # noqa: PLR0913, PLR0917 - typer's options
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Python files, notebooks, or folders of them.",
            show_default=False,
        ),
    ],
    format_name: Annotated[str | None, format_option("findings")] = None,
    output_file: OutputFile = None,
    json_to: JsonFile = None,
    sarif_to: Annotated[
        str | None,
        typer.Option(
            "--sarif", metavar="FILE", help="Write SARIF 2.1.0; - for stdout.", show_default=False
        ),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the rewrites that are safe.")] = False,
    diff: Annotated[
        bool,
        typer.Option("--diff", help="Show what --fix changes; without --fix nothing is written."),
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="IDS",
            help="Only these causes or rules, with commas between.",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="IDS", help="All but these causes or rules.", show_default=False
        ),
    ] = None,
    cpus: Annotated[
        int | None,
        typer.Option(
            "--cpus",
            min=1,
            help="CPUs of a node of the job: its loaders are held against them.",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Ranks of the job on a node.", show_default=False),
    ] = None,
    no_color: NoColor = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="One line per finding, and per file that could not be read."
        ),
    ] = False,
) -> int:
    """Read training code, without running it, for patterns that will hang or crash a job.

    \b
    A comment `# trainprobe: ignore[ID]` on a line, or above it, waives a finding.
    Exit code: 0 nothing found, 1 findings, 2 usage, 3 nothing found, but a file could not be read,
    or not by all rules.

    \b
    Examples:
      trainprobe lint train.py
      trainprobe lint src/ --diff
      trainprobe lint src/ --fix
      trainprobe lint train.py --cpus 64 --ranks 8
      trainprobe lint . --sarif findings.sarif
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import HEALTHY, ILL, UNDETERMINED
    from trainprobe.cli.linting import check_paths, look, rule_ids
    from trainprobe.cli.output import output_of, to_a_reader, write_result

    check_paths(paths)
    output = output_of(
        "findings", format_name, output_file, json_to, sarif_to, quiet=quiet, no_color=no_color
    )
    result, diffs = look(
        paths,
        select=rule_ids(select),
        ignore=rule_ids(ignore),
        fix=fix,
        diff=diff,
        cpus=cpus,
        ranks=ranks,
    )
    stream = output.text_stream()
    if stream is not None:
        with to_a_reader(stream):
            stream.write("".join(diffs))
    write_result(output, result)
    return ILL if result.findings else HEALTHY if result.complete else UNDETERMINED
