"""`trainprobe lint PATH...`: reading training code for what will hang or crash it."""

from __future__ import annotations

from typing import Annotated

import typer

from trainprobe.cli.options import (
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    flag,
    format_option,
    option,
)


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
    html_to: HtmlFile = None,
    sarif_to: Annotated[
        str | None, option("FILE", "Write SARIF 2.1.0; - for stdout.", "--sarif")
    ] = None,
    fix: Annotated[bool, flag("Apply the rewrites that are safe.", "--fix")] = False,
    diff: Annotated[
        bool, flag("Show what --fix changes; without --fix nothing is written.", "--diff")
    ] = False,
    select: Annotated[
        list[str] | None,
        option("IDS", "Only these causes or rules, with commas between.", "--select"),
    ] = None,
    ignore: Annotated[
        list[str] | None, option("IDS", "All but these causes or rules.", "--ignore")
    ] = None,
    hints: Annotated[bool, flag("Also what is less likely right than wrong.", "--hints")] = False,
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
    baseline: Annotated[
        str | None,
        option("FILE", "Leave out the findings that this file holds.", "--baseline"),
    ] = None,
    write_baseline: Annotated[
        str | None,
        option(
            "FILE", "Write all findings to this file, to be left out later.", "--write-baseline"
        ),
    ] = None,
    changed: Annotated[
        str | None,
        option(
            "COMMIT",
            "Only findings about lines changed since this commit, such as origin/main.",
            "--changed",
        ),
    ] = None,
    no_cache: Annotated[
        bool, flag("Read everything anew; keep no answer for the next run.", "--no-cache")
    ] = False,
    no_color: NoColor = False,
    quiet: Annotated[
        bool, flag("One line per finding, and per file that could not be read.", "--quiet", "-q")
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
      trainprobe lint . --write-baseline lint-baseline.json
      trainprobe lint . --baseline lint-baseline.json --changed origin/main
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import HEALTHY, ILL, UNDETERMINED
    from trainprobe.cli.linting import LeaveOut, check_paths, keep_as_baseline, look, rule_ids
    from trainprobe.cli.output import output_of, to_a_reader, write_result
    from trainprobe.errors import UsageError

    check_paths(paths)
    if write_baseline is not None and (baseline is not None or changed is not None):
        raise UsageError(
            "--write-baseline holds all findings; --baseline and --changed leave some out.",
            "Give --write-baseline alone.",
        )
    output = output_of(
        "findings",
        format_name,
        output_file,
        json_to,
        sarif_to,
        html_to,
        quiet=quiet,
        no_color=no_color,
    )
    result, diffs = look(
        paths,
        select=rule_ids(select),
        ignore=rule_ids(ignore),
        fix=fix,
        diff=diff,
        cpus=cpus,
        ranks=ranks,
        leave_out=LeaveOut(baseline, changed, hints=not hints),
        use_cache=not no_cache,
    )
    if write_baseline is not None:
        keep_as_baseline(write_baseline, result.findings)
    stream = output.text_stream()
    if stream is not None:
        with to_a_reader(stream):
            stream.write("".join(diffs))
    write_result(output, result)
    new = result.findings and write_baseline is None
    return ILL if new else HEALTHY if result.complete else UNDETERMINED
