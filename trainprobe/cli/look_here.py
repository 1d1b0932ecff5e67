"""`trainprobe look-here`: what other nodes are asked to do by `attach --slurm` and `--hosts`. Not for people."""

from __future__ import annotations

from typing import Annotated

import typer


def look_here(
    slurm_job: Annotated[str, typer.Option(metavar="JOB", help="Only processes of this SLURM job.")] = "",
    timeout: Annotated[str, typer.Option(metavar="S", help="End the look after S seconds.")] = "10",
) -> int:
    """Look at the training on this host and print the evidence as lines of JSON."""
    from trainprobe.attach.here import look_here as look
    from trainprobe.cli.words_given import seconds

    return look(slurm_job, seconds("--timeout", timeout) or 10.0)
