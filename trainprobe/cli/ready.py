"""`trainprobe ready`: are these nodes fit for a job, and if not, which is not and who must act."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report

DRAIN_S = 3600.0  # the report is out; each node is asked with a deadline of its own
FORMATS = ("text", "json", "junit", "prometheus", "nagios")


def ready(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Over in 50 s at most; the default.")] = False,
    standard: Annotated[bool, typer.Option("--standard", help="Over in 5 minutes at most.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Over in 30 minutes at most.")] = False,
    nodes: Annotated[str | None, typer.Option(metavar="A,B,...", help="These hosts, over ssh or the job's srun: node[1-8]; all for those of the job.")] = None,
    nproc: Annotated[str | None, typer.Option(metavar="N", help="Ranks per node that the job will have.")] = None,
    gpus: Annotated[str | None, typer.Option(metavar="N", help="GPUs per node that the job will use.")] = None,
    paths: Annotated[list[str] | None, typer.Option(metavar="DIR,...", help="Folders that every node must see: data, checkpoints, logs.")] = None,
    script: Annotated[str | None, typer.Option(metavar="FILE", help="The training script.")] = None,
    python: Annotated[str | None, typer.Option(metavar="PATH", help="The Python of the job, where it is not the first on PATH.")] = None,
    sbatch: Annotated[str | None, typer.Option(metavar="FILE", help="Check a batch script before it is submitted; options of sbatch come after --.")] = None,
    write: Annotated[str | None, typer.Option(metavar="FILE", help="With --sbatch: write the corrected script there.")] = None,
    slot: Annotated[str | None, typer.Option(metavar="NAME", help="Where this runs: step, prolog, epilog, healthcheck or taskprolog.")] = None,
    no_slurm: Annotated[bool, typer.Option("--no-slurm", help="Ask SLURM nothing, and look at this node alone.")] = False,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="On stdout: text, json, junit, prometheus or nagios.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as faults.")] = False,
    inconclusive: Annotated[str | None, typer.Option(metavar="pass|fail", help="End with 0 or 1, and not with 3, where it cannot be told.")] = None,
    exclude_file: Annotated[str | None, typer.Option(metavar="FILE", help="Write the nodes to leave out there; without nodes at fault it is removed.")] = None,
    drain: Annotated[str | None, typer.Option(metavar="A,B,...", help="Set these nodes to drain where they are found at fault; as an admin.")] = None,
    timeout: Annotated[str | None, typer.Option(metavar="S", help="Be over after S seconds, below the budget's own limit.")] = None,
    case: Annotated[str | None, typer.Option(metavar="DIR", help="Where the evidence goes; a new folder here by default.")] = None,
    json_to: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the headline and the head of the first cause.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; the words are the same.")] = False,
) -> int:
    """Check the nodes of a job before it starts: limits, memory, storage, network, devices, settings, and the traffic between nodes.

    It looks as the job would: same user, limits, environment and container, and it needs no root. In a SLURM job
    it looks at all nodes of the job, from one place; elsewhere at this node alone, or at those of --nodes.
    It ends with 0 where the job may start, with 1 where something must be put right first, with 10 where nodes are
    at fault that can be left out, and with 3 where it cannot tell.

    \b
    Examples:
      trainprobe ready
      trainprobe ready --nodes node[1-8] --gpus 8 --paths /data,/checkpoints
      srun trainprobe ready --exclude-file bad-nodes.txt
      trainprobe ready --sbatch job.sh
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.exit_codes import ready_code_of
    from trainprobe.cli.live_look import looking
    from trainprobe.cli.readiness_given import budget_of, may_drain, ready_request
    from trainprobe.cli.showing import check_json_target
    from trainprobe.config import read_settings
    from trainprobe.errors import UsageError
    from trainprobe.ready.surroundings import leads

    report: Report
    check_json_target(json_to)
    if format_ not in FORMATS:
        raise UsageError(f"--format knows {', '.join(FORMATS)}, not {format_[:20]!r}.")
    if inconclusive not in (None, "pass", "fail"):
        raise UsageError(f"--inconclusive needs pass or fail, not {inconclusive[:20]!r}.")
    if sbatch is not None:
        from trainprobe.cli.sbatch_plan import sbatch_plan

        of_nodes = {"--nodes": nodes, "--slot": slot, "--exclude-file": exclude_file, "--drain": drain}
        if any(of_nodes.values()):
            raise UsageError(f"{next(name for name, given in of_nodes.items() if given)} is of nodes, and --sbatch looks at none.", "Give one of them.")
        report = sbatch_plan(sbatch, tuple(context.args), write=write, case=case, form=format_, json_to=json_to, quiet=quiet, no_color=no_color)
        return ready_code_of(report, strict=strict, inconclusive=inconclusive or "")
    if context.args or write is not None:
        raise UsageError(f"{context.args[0]!r} is not an option." if context.args else "--write belongs to --sbatch.", "See trainprobe ready --help.")
    if not no_slurm and slot is None and nodes is None and not leads():
        sys.stdout.write(f"trainprobe: task {os.environ.get('SLURM_PROCID')} leaves it to task 0, which looks at all nodes.\n")
        return 0
    if drain is not None:
        may_drain(drain)
    request = ready_request(
        budget_of(quick=quick, standard=standard, deep=deep),
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
    from trainprobe.cli.readiness_told import drained, show_ready, write_exclude_file
    from trainprobe.pipelines import ready as check
    from trainprobe.system.overseer import tell

    tell(form=format_, json_to=json_to, quiet=quiet, no_color=no_color, inconclusive=inconclusive)
    with looking(quiet=quiet) as progress:
        report = check(request, read_settings(None), progress)
    show_ready(report, format_, json_to=json_to, quiet=quiet, no_color=no_color)
    code = ready_code_of(report, strict=strict, inconclusive=inconclusive or "")
    tell(code=code)
    if exclude_file is not None:
        write_exclude_file(report, exclude_file)
    if drain is not None:
        tell(within_s=DRAIN_S)
        drained(report, drain)
    return code
