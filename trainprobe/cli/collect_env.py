"""`trainprobe collect-env`: what surrounds a job on this machine, for `trainprobe explain --env`
on any other.
"""

from __future__ import annotations

from typing import Annotated

from trainprobe.cli.options import option


def collect_env(
    json_to: Annotated[
        str | None, option("FILE", "Write it as JSON; - for stdout.", "--json")
    ] = None,
    python: Annotated[
        str,
        option(
            "PATH",
            "The Python of the job, whose packages are listed; else the one that runs trainprobe.",
            "--python",
        ),
    ] = "",
) -> int:
    """Print the limits, memory, shared memory, CPUs, interfaces, GPUs, versions and settings that a
    job meets on this machine.

    It needs no privileges and imports no torch. Run it where the job runs, inside its container and
    its srun, since limits differ there. Of the environment only known names of libraries and
    launchers are kept, and no secrets.

    \b
    Examples:
      srun -N1 -n1 trainprobe collect-env --json node7.json
      trainprobe explain slurm-4242.out --env node7.json
    """  # noqa: D301 - \b keeps the lines of the example apart
    import json
    import os
    import sys

    from trainprobe.cli.output import check_file, to_a_reader
    from trainprobe.collect.host_values import PythonError, host_values
    from trainprobe.collect.members import host_name
    from trainprobe.errors import UsageError
    from trainprobe.redact import Redactor, clean
    from trainprobe.targets.environment import SCHEMA

    check_file(json_to)
    try:
        values = host_values(python)
    except PythonError as error:
        raise UsageError(
            f"{python} cannot be asked for its packages: {error}.",
            "Name a Python 3 interpreter with --python.",
        ) from None
    told, _ = Redactor(os.environ).data({"schema": SCHEMA, "host": host_name(), "values": values})
    text = json.dumps(told, indent=1) + "\n"
    if json_to not in (None, "-"):
        try:
            with open(str(json_to), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(
                f"--json {json_to} was not written: {error.strerror}.",
                "Name a file in a folder that exists and is yours, or - for stdout.",
            ) from None
        return 0
    if json_to is None:
        width = max((len(name) for name in told["values"]), default=0) + 2
        text = "".join(
            f"{name:<{width}}{' '.join(clean(value).split())}\n"
            for name, value in told["values"].items()
        )
    with to_a_reader(sys.stdout):
        sys.stdout.write(text)
        sys.stdout.flush()
    return 0
