"""`trainprobe attach [PID]`: look at a job that runs, and leave it as it was."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from trainprobe.cli.options import (
    Case,
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    Quiet,
    ShareFile,
    Verbose,
    flag,
    format_option,
    option,
)


def attach(  # noqa: PLR0913, PLR0917 - one parameter per option
    pid: Annotated[
        str | None,
        typer.Argument(
            metavar="PID",
            help="Any process of the job: launcher, rank or worker.",
            show_default=False,
        ),
    ] = None,
    slurm: Annotated[
        str | None, option("JOB[.STEP]", "A running job of SLURM: look on all of its nodes.")
    ] = None,
    hosts: Annotated[
        str | None,
        option(
            "A,B,...",
            "Look on these hosts, over ssh: node[1-8]; all for those of the job around us.",
        ),
    ] = None,
    kubectl: Annotated[
        str | None,
        option(
            "SELECTOR", "Look into the pods with these labels, by kubectl exec: job-name=train."
        ),
    ] = None,
    namespace: Annotated[str | None, option("N", "With --kubectl: the pods' namespace.")] = None,
    container: Annotated[
        str | None, option("C", "With --kubectl: the container of each pod.")
    ] = None,
    bundle: Annotated[
        bool,
        flag(
            "Send the tool along to nodes that do not have it; into pods it always is.", "--bundle"
        ),
    ] = False,
    node_python: Annotated[
        str | None, option("PROGRAM", "What runs it there: Python 3.9 or newer. [default: python3]")
    ] = None,
    deep: Annotated[
        bool,
        flag(
            "Have each rank write its flight recorder: this runs code inside the job; --deep=auto"
            " does so only where the plain look leaves the calls open.",
            "--deep",
        ),
    ] = False,
    deep_auto: Annotated[bool, typer.Option("--deep-auto", hidden=True)] = False,
    trigger_dump: Annotated[
        bool, flag("Ask for a flight-recorder dump through the job's own pipe.", "--trigger-dump")
    ] = False,
    watch: Annotated[
        str | None, option("S", "Look again every S seconds until Ctrl-C, and say what moved.")
    ] = None,
    times: Annotated[str | None, option("N", "With --watch: look N times in all.")] = None,
    quick: Annotated[
        bool,
        flag("Look for a second only: a short or slow trouble may stay open.", "--quick"),
    ] = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
    timeout: Annotated[
        str | None, option("S", "End the look after S seconds and report what was seen.")
    ] = None,
    case: Case = None,
    format_name: Annotated[str | None, format_option("diagnosis")] = None,
    output_file: OutputFile = None,
    json_to: JsonFile = None,
    html_to: HtmlFile = None,
    share_to: ShareFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> int:
    """Look at a training job that hangs or crawls, and say which rank holds up the rest, what it
    waits for, and why.

    Nothing has to be prepared in the job, and it goes on as if nobody had looked: no signal is
    sent, and each process pauses for a few milliseconds at most. Without PID it takes your only
    training job on this host.

    \b
    Examples:
      trainprobe attach
      trainprobe attach 48213
      trainprobe attach 48213 --deep=auto
      trainprobe attach 48213 --watch 10
      trainprobe attach --slurm 4711
      trainprobe attach --kubectl job-name=train
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.arguments import seconds, whole_number
    from trainprobe.cli.exit_codes import code_of_report
    from trainprobe.cli.live_look import PATIENCE_S, looking
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.errors import UsageError
    from trainprobe.model.request import AttachRequest
    from trainprobe.targets.host_names import host_names

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
    if times is not None and watch is None:
        raise UsageError(
            "--times says how often to look.", "Give --watch S too: the seconds between two looks."
        )
    if quick and watch is not None:
        raise UsageError("--quick looks once and --watch again and again.", "Give one of them.")
    elsewhere = [option for option in (slurm, hosts, kubectl) if option is not None]
    if len(elsewhere) + (pid is not None) > 1:
        raise UsageError(
            "PID, --slurm, --hosts and --kubectl each name the job.", "Give one of them."
        )
    if (namespace is not None or container is not None) and kubectl is None:
        raise UsageError("--namespace and --container are of pods.", "Give --kubectl SELECTOR too.")
    if (bundle or node_python is not None) and not elsewhere:
        raise UsageError(
            "--bundle and --node-python are for other nodes.",
            "Give --slurm, --hosts or --kubectl too.",
        )
    if node_python is not None and kubectl is None and not bundle:
        raise UsageError("--node-python runs the tool that is sent along.", "Give --bundle too.")
    if slurm is not None and not slurm.strip():
        raise UsageError("--slurm needs a job id, as 4711 or 4711.0.", "See yours: squeue --me.")
    if elsewhere and (deep or deep_auto or trigger_dump or watch or quick):
        raise UsageError(
            "--deep, --trigger-dump, --watch and --quick look on this host only.",
            "Run them on the node: ssh NODE trainprobe attach --deep.",
        )
    request = AttachRequest(
        pid=whole_number("PID", pid, 2**31 - 1),
        deep=deep,
        deep_if_open=deep_auto and not deep,
        trigger_dump=trigger_dump,
        watch_s=seconds("--watch", watch),
        times=whole_number("--times", times),
        timeout_s=seconds("--timeout", timeout),
        quick=quick,
        watched=watched,
        case=case,
        argv=_again(
            pid,
            {
                "--slurm": slurm,
                "--hosts": hosts,
                "--kubectl": kubectl,
                "--namespace": namespace,
                "--container": container,
                "--node-python": node_python,
            },
            bundle=bundle,
        ),
        slurm=slurm or "",
        kubectl=kubectl or "",
        namespace=namespace or "",
        container=container or "",
        bundle=bundle,
        node_python=node_python or "python3",
        hosts=host_names("--hosts", hosts) if hosts is not None else (),
    )
    from trainprobe.pipelines import attach as look

    with looking(quiet=quiet, patience_s=0.0 if request.watch_s else PATIENCE_S) as progress:
        report = look(request, progress, _chooser())
    write_result(output, report)
    return output.exit_code(report, code_of_report(report))


def _again(pid: str | None, options: Mapping[str, str | None], *, bundle: bool) -> tuple[str, ...]:
    """The command that looks at the same job again."""
    argv = ["trainprobe", "attach", *((pid,) if pid else ())]
    for name, value in options.items():
        argv += [name, value] if value else []
    return (*argv, "--bundle") if bundle else tuple(argv)


def _chooser() -> Callable[[Sequence[str]], int] | None:
    """Return the question, or None where nobody could answer it."""
    return ask if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None


def ask(lines: Sequence[str]) -> int:
    """List the jobs with numbers on stderr and return the place of the chosen one. Raises
    UsageError for an answer that names none.
    """
    from trainprobe.errors import UsageError

    for number, line in enumerate(lines, 1):
        sys.stderr.write(f" {number:2}  {line}\n")
    sys.stderr.write(f"Which one? 1-{len(lines)}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not re.fullmatch("[0-9]{1,3}", answer) or not 1 <= int(answer) <= len(lines):
        raise UsageError("No job was chosen.", "Name one: trainprobe attach PID.")
    return int(answer) - 1
