"""The commands that other nodes are asked to run: `look-here`, `checks-here`, `climb-here` and
`probe-here`. They are not for people.
"""

from __future__ import annotations

from typing import Annotated

import typer


def look_here(
    slurm_job: Annotated[
        str, typer.Option(metavar="JOB", help="Only processes of this SLURM job.")
    ] = "",
    timeout: Annotated[str, typer.Option(metavar="S", help="End the look after S seconds.")] = "10",
) -> int:
    """Look at the training on this host and print the evidence as lines of JSON."""
    from trainprobe.attach.node_look import look_here as look
    from trainprobe.cli.arguments import seconds

    return look(slurm_job, seconds("--timeout", timeout) or 10.0)


def checks_here() -> int:
    """Check this host as stdin says, and print what was found as lines of JSON."""
    from trainprobe.ready.remote_checks import checks_here as check

    return check()


def climb_here() -> int:
    """Run this node's part of a climb, as stdin says, and print what is seen as lines of JSON."""
    from trainprobe.ladder.node_agent import climb_here as climb

    return climb()


def probe_here() -> int:
    """Run one of our probe programs, as stdin says, and print its events as lines of JSON."""
    from trainprobe.nodes.local_probe import probe_here as probe

    return probe()
