"""`trainprobe run -- COMMAND`: run a job as if nobody stood before it, and watch it."""

from __future__ import annotations

from typing import Annotated

import typer

from trainprobe.cli.options import Case, Quiet, option

ON_HANG, ON_SLOW = ("report", "kill", "requeue"), ("report", "ignore")


def run(  # noqa: PLR0917 - one parameter per option
    context: typer.Context,
    on_hang: Annotated[
        str,
        option(
            "report|kill|requeue",
            "When it hangs: report and let it be [default]; end it too, with exit code 74; or end"
            " it with exit code 75, for a script that starts it again.",
        ),
    ] = "report",
    on_slow: Annotated[
        str, option("report|ignore", "When a look finds it slow. [default: report]")
    ] = "report",
    no_prepare: Annotated[
        bool,
        typer.Option(
            "--no-prepare",
            help="Add nothing to its environment: no flight recorder, faulthandler or error file.",
        ),
    ] = False,
    notify: Annotated[
        list[str] | None,
        option(
            "CMD|URL",
            "Tell: a command gets a summary on stdin, a URL JSON by POST; may be repeated.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        option("FILE", "Keep this file for Prometheus' textfile collector up to date."),
    ] = None,
    case: Case = None,
    quiet: Quiet = False,
) -> int:
    """Run a training job, watch it, and report which rank holds it up as soon as it stands still.

    The job runs as it would alone: with the same input, output and terminal, signals and exit code.
    When its ranks stop working as they use to, it is looked at as `trainprobe attach` does; only if
    that finds a hang, the report is written to stderr and into a folder. If the job fails, the
    report says which rank died first, and of what. On several nodes, run it on each: srun
    --ntasks-per-node=1 trainprobe run -- torchrun ...

    \b
    Examples:
      trainprobe run -- torchrun --nproc-per-node 8 train.py
      trainprobe run --on-hang=requeue -- torchrun --nproc-per-node 8 train.py
      trainprobe run --notify https://hooks.example/T0/B1 -- accelerate launch train.py
    """  # noqa: D301 - \b keeps the lines of the example apart
    import os

    from trainprobe.cli.exit_codes import ENDED, REQUEUE
    from trainprobe.cli.output import check_file
    from trainprobe.cli.standard_streams import closed
    from trainprobe.errors import UsageError
    from trainprobe.model.request import RunRequest
    from trainprobe.pipelines import run as run_and_watch
    from trainprobe.supervise.notification import check_target
    from trainprobe.system.signal_relay import end_like

    words = tuple(context.args)
    if not words:
        raise UsageError("There is no command to run.", "trainprobe run -- torchrun train.py")
    for name, word, choices in (("--on-hang", on_hang, ON_HANG), ("--on-slow", on_slow, ON_SLOW)):
        if word not in choices:
            raise UsageError(f"{name} is one of {', '.join(choices)}, not {word[:40]!r}.")
    for target in notify or ():
        check_target(target)
    check_file(metrics, "--metrics")
    request = RunRequest(
        argv=words,
        on_hang="kill" if on_hang == "kill" else "requeue" if on_hang == "requeue" else "report",
        on_slow="report" if on_slow == "report" else "ignore",
        prepare=not no_prepare,
        notify=tuple(notify or ()),
        metrics=metrics or "",
        case=case,
        quiet=quiet,
        # One of the tasks that a scheduler starts on a node watches for all of them.
        watches=os.environ.get("SLURM_LOCALID", "0") == "0",
        closed=tuple(closed),
    )
    watched = run_and_watch(request)
    if watched.policy:
        return REQUEUE if watched.policy == "requeue" else ENDED
    if os.WIFSIGNALED(watched.status):
        end_like(watched.status)
    return os.WEXITSTATUS(watched.status)
