"""`trainprobe ready`: are these nodes fit for a job, and if not, which is not and who must act."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trainprobe.cli.options import (
    Case,
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    Quiet,
    Verbose,
    flag,
    format_option,
    option,
)

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report
    from trainprobe.model.request import ReadyRequest

DRAIN_S = 3600.0  # the report is out; each node is asked with a deadline of its own
Budget = Literal["quick", "standard", "deep"]


def ready(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    quick: Annotated[bool, flag("Over in 50 s at most; the default.", "--quick")] = False,
    standard: Annotated[bool, flag("Over in 5 minutes at most.", "--standard")] = False,
    deep: Annotated[bool, flag("Over in 30 minutes at most.", "--deep")] = False,
    nodes: Annotated[
        str | None,
        option(
            "A,B,...",
            "These hosts, by the job's own starter or ssh: node[1-8]; all for those of the job.",
        ),
    ] = None,
    nproc: Annotated[str | None, option("N", "Ranks per node that the job will have.")] = None,
    gpus: Annotated[str | None, option("N", "GPUs per node that the job will use.")] = None,
    paths: Annotated[
        list[str] | None,
        option("DIR,...", "Folders that every node must see: data, checkpoints, logs."),
    ] = None,
    script: Annotated[str | None, option("FILE", "The training script.")] = None,
    python: Annotated[
        str | None, option("PATH", "The Python of the job, where it is not the first on PATH.")
    ] = None,
    sbatch: Annotated[
        str | None,
        option(
            "FILE", "Check a SLURM, PBS or LSF script or a manifest; options of sbatch after --."
        ),
    ] = None,
    write: Annotated[
        str | None, option("FILE", "With --sbatch: write the corrected script there.")
    ] = None,
    slot: Annotated[
        str | None,
        option("NAME", "Where this runs: step, prolog, epilog, healthcheck or taskprolog."),
    ] = None,
    no_slurm: Annotated[
        bool, flag("Ask no batch system, and look at this node alone.", "--no-slurm")
    ] = False,
    format_name: Annotated[str | None, format_option("readiness", "script")] = None,
    output_file: OutputFile = None,
    strict: Annotated[bool, flag("Warnings count as faults.", "--strict")] = False,
    inconclusive: Annotated[
        str | None, option("pass|fail", "End with 0 or 1, and not with 3, where it cannot be told.")
    ] = None,
    exclude_file: Annotated[
        str | None,
        option("FILE", "Write the nodes to leave out there; without nodes at fault it is removed."),
    ] = None,
    drain: Annotated[
        str | None,
        option("A,B,...", "Set these nodes to drain where they are found at fault; as an admin."),
    ] = None,
    timeout: Annotated[
        str | None, option("S", "Be over after S seconds, below the budget's own limit.")
    ] = None,
    case: Case = None,
    json_to: JsonFile = None,
    html_to: HtmlFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> int:
    """Check the nodes of a job before it starts: limits, memory, storage, network, devices,
    settings, and the traffic between nodes.

    It looks as the job would: same user, limits, environment and container, and it needs no root.
    In a job of SLURM, PBS, LSF, Flux or Grid Engine it looks at all nodes of the job, from one
    place; elsewhere at this node alone, or at those of --nodes. It ends with 0 where the job may
    start, with 1 where something must be put right first, with 10 where nodes are at fault that
    can be left out, and with 3 where it cannot tell.

    \b
    Examples:
      trainprobe ready
      trainprobe ready --nodes node[1-8] --gpus 8 --paths /data,/checkpoints
      srun trainprobe ready --exclude-file bad-nodes.txt
      trainprobe ready --sbatch job.sh
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import ready_code_of
    from trainprobe.cli.live_look import looking
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.config import read_settings
    from trainprobe.errors import UsageError
    from trainprobe.ready.node_selection import leads

    report: Report
    output = output_of(
        "readiness" if sbatch is None else "script",
        format_name,
        output_file,
        json_to,
        html_to=html_to,
        quiet=quiet,
        verbose=verbose,
        no_color=no_color,
    )
    if inconclusive not in (None, "pass", "fail"):
        raise UsageError(f"--inconclusive needs pass or fail, not {inconclusive[:20]!r}.")
    if sbatch is not None:
        from trainprobe.cli.sbatch_plan import sbatch_plan

        of_nodes = {
            "--nodes": nodes,
            "--slot": slot,
            "--exclude-file": exclude_file,
            "--drain": drain,
        }
        if any(of_nodes.values()):
            raise UsageError(
                f"{next(name for name, given in of_nodes.items() if given)} is of nodes, and"
                " --sbatch looks at none.",
                "Give one of them.",
            )
        report = sbatch_plan(sbatch, tuple(context.args), write=write, case=case, output=output)
        code = ready_code_of(report, strict=strict, inconclusive=inconclusive or "")
        return output.exit_code(report, code)
    if context.args or write is not None:
        raise UsageError(
            (
                f"{context.args[0]!r} is not an option."
                if context.args
                else "--write belongs to --sbatch."
            ),
            "See trainprobe ready --help.",
        )
    if not no_slurm and slot is None and nodes is None and not leads():
        sys.stdout.write(
            f"trainprobe: task {os.environ.get('SLURM_PROCID')} leaves it to task 0, which looks at"
            " all nodes.\n"
        )
        return 0
    if drain is not None:
        _check_drain(drain)
    request = _request(
        _budget(quick=quick, standard=standard, deep=deep),
        slot,
        nodes,
        nproc=nproc,
        gpus=gpus,
        paths=paths,
        script=script,
        timeout=timeout,
        case=case,
        slurm=not no_slurm,
        python=python,
    )
    from trainprobe.pipelines import ready as check
    from trainprobe.system.overseer import tell

    output_options = [format_name, output_file, json_to, None, html_to]
    tell(output=output_options, quiet=quiet, no_color=no_color, inconclusive=inconclusive)
    if exclude_file is not None:
        tell(exclude_file=os.path.abspath(exclude_file))
    with looking(quiet=quiet) as progress:
        report = check(request, read_settings(None), progress)
    write_result(output, report)
    code = output.exit_code(
        report, ready_code_of(report, strict=strict, inconclusive=inconclusive or "")
    )
    tell(code=code)
    if exclude_file is not None:
        write_exclude_file(report, exclude_file)
    if drain is not None:
        tell(within_s=DRAIN_S)
        _drain(report, drain)
    return code


def _budget(*, quick: bool, standard: bool, deep: bool) -> Budget:
    """Return the one budget that was asked for; raises UsageError for two."""
    from trainprobe.errors import UsageError

    asked: list[Budget] = []
    asked += ["quick"] if quick else []
    asked += ["standard"] if standard else []
    asked += ["deep"] if deep else []
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} are two budgets.", "Give one of them.")
    return asked[0] if asked else "quick"


def _request(  # noqa: PLR0913 - one parameter per option
    budget: Budget,
    slot: str | None,
    nodes: str | None,
    *,
    nproc: str | None,
    gpus: str | None,
    paths: Sequence[str] | None,
    script: str | None,
    timeout: str | None,
    case: str | None,
    slurm: bool,
    python: str | None,
) -> ReadyRequest:
    """Return the request; raises UsageError for a value that cannot be used."""
    from trainprobe.checks import SLOTS
    from trainprobe.cli.arguments import names, seconds, whole_number
    from trainprobe.errors import UsageError
    from trainprobe.model.request import ReadyRequest
    from trainprobe.targets.host_names import host_names

    where = slot or os.environ.get("TRAINPROBE_SLOT") or "step"
    if where not in SLOTS:
        raise UsageError(f"--slot knows {', '.join(SLOTS)}, not {where[:20]!r}.")
    folders = names(paths or ())
    relative = [folder for folder in folders if not os.path.isabs(folder)]
    if relative:
        raise UsageError(
            f"--paths {relative[0][:60]} is not a full path.",
            "On another node it would mean another folder; begin it with /.",
        )
    apart = [folder for folder in folders if ":" in folder or "\n" in folder]
    if apart:
        raise UsageError(
            f"--paths {apart[0][:60]!r} cannot be told to a node: a colon stands between two"
            " folders there.",
            "Name the folder above it.",
        )
    return ReadyRequest(
        budget=budget,
        slot=where,
        nodes=(host_names("--nodes", nodes) if nodes is not None else ()),
        nproc=whole_number("--nproc", nproc),
        gpus=whole_number("--gpus", gpus),
        paths=folders,
        script=os.path.abspath(script) if script else "",
        interpreter=python,
        slurm=slurm,
        timeout_s=seconds("--timeout", timeout),
        case=case,
        argv=(
            "trainprobe",
            "ready",
            *((f"--{budget}",) if budget != "quick" else ()),
            *(("--nodes", nodes) if nodes else ()),
        ),
    )


def _check_drain(named: str) -> None:
    """Raise UsageError where `named` are no nodes, or this user may not drain them: before
    anything is looked at.
    """
    from trainprobe.ready.drain import refuse_drain
    from trainprobe.site import read_site
    from trainprobe.targets.host_names import host_names

    host_names("--drain", named)
    refuse_drain(read_site(), os.getuid())


def write_exclude_file(report: Report, path: str) -> None:
    """Write the nodes to leave out, one line in SLURM's short form; a file of an earlier run
    goes where there are none, and stays where we were interrupted. A failure is said, not
    raised.
    """
    from trainprobe.model.node_names import folded

    if report.extra.get("interrupted") is True:
        return
    exclude = _nodes(report, "exclude")
    try:
        if exclude:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{folded(exclude)}\n")
        elif os.path.isfile(path):
            os.unlink(path)
    except OSError as error:
        sys.stderr.write(f"trainprobe: --exclude-file {path} was not written: {error.strerror}.\n")


def _drain(report: Report, named: str) -> None:
    """Set those of the named nodes to drain that were found at fault, and say what came of it.
    What an administrator has set by hand is never undone.
    """
    from trainprobe.model.node_names import folded
    from trainprobe.ready.drain import drain
    from trainprobe.report.phrases import clean
    from trainprobe.report.readiness_section import readiness_of
    from trainprobe.targets.host_names import host_names

    wanted = host_names("--drain", named)
    chosen = [node for node in _nodes(report, "exclude") if node in wanted]
    if not chosen:
        sys.stderr.write(
            f"trainprobe: None of {folded(wanted)} was found at fault; nothing was drained.\n"
        )
        return
    checks = [
        row
        for row in readiness_of(report).get("checks", ())
        if row.get("state") == "fail" and set(row.get("hosts", ())) & set(chosen)
    ]
    # a node that gave none has no checks
    reason = ", ".join(dict.fromkeys(str(row.get("id")) for row in checks)) or "no answer"
    for says in drain(chosen, reason).says:
        sys.stderr.write(f"trainprobe: {clean(says)}\n")


def _nodes(report: Report, name: str) -> list[str]:
    from trainprobe.report.readiness_section import readiness_of

    found = readiness_of(report).get(name)
    return (
        [node for node in found if isinstance(node, str)]
        if isinstance(found, (list, tuple))
        else []
    )
