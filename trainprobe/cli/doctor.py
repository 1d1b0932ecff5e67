"""`trainprobe doctor`: what the tool can see on this machine, and what to type where it cannot."""

from __future__ import annotations

from typing import Annotated

from trainprobe.cli.options import NoColor, option


def doctor(
    json_to: Annotated[
        str | None, option("FILE", "Write it as JSON; - for stdout.", "--json")
    ] = None,
    python: Annotated[
        str, option("PATH", "The Python of the job. [default: the one of your shell]", "--python")
    ] = "",
    no_color: NoColor = False,
) -> int:
    """Say what trainprobe can see here: stacks, kernel log, limits, GPUs, the recorder of torch,
    other nodes; each with the remedy where it cannot.

    It looks at nothing but this machine and a process of its own, which it starts for that.
    Exit code: 0 where the stacks of your own jobs can be seen, 3 where they cannot.

    \b
    Examples:
      trainprobe doctor
      srun -N1 -n1 trainprobe doctor
      trainprobe doctor --json -
    """  # noqa: D301 - \b keeps the lines of the example apart
    import os
    import sys

    from trainprobe import __version__
    from trainprobe.checks.visibility import conclude
    from trainprobe.cli.exit_codes import HEALTHY, UNDETERMINED
    from trainprobe.cli.output import check_file, to_a_reader, width_of, write_file
    from trainprobe.collect.visibility import see
    from trainprobe.model.visibility import DOCTOR_SCHEMA, VisibilityReport
    from trainprobe.redact import Redactor
    from trainprobe.report.terminal import wants_colour
    from trainprobe.report.visibility_text import visibility_json, visibility_text

    check_file(json_to)
    here = see(python)
    report = VisibilityReport(DOCTOR_SCHEMA, __version__, here.host, here.user, conclude(here))
    if json_to not in (None, "-"):
        write_file(str(json_to), visibility_json(report))
    colour = wants_colour(sys.stdout, os.environ, asked_not=no_color)
    text = visibility_text(report, width_of(sys.stdout), colour=colour)
    text = visibility_json(report) if json_to == "-" else text
    with to_a_reader(sys.stdout):
        sys.stdout.write(Redactor(os.environ).text(text)[0])
        sys.stdout.flush()
    seen = next(line.seen for line in report.lines if line.id == "stacks")
    return HEALTHY if seen == "yes" else UNDETERMINED
