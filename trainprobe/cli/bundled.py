"""The command line of a bundle: what a node is asked, without the libraries that talk to people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from trainprobe import __version__
from trainprobe.errors import TrainprobeError


def command(argv: Sequence[str]) -> int:
    """Run one command and return its exit code. Foreseen failures become one sentence on stderr."""
    from trainprobe.cli.ready_slot import is_for_a_slot, ready_slot

    words = argparse.ArgumentParser(
        prog="trainprobe.pyz", description="Look at this host for trainprobe on another one."
    )
    words.add_argument("--version", action="version", version=f"trainprobe {__version__}")
    commands = words.add_subparsers(dest="command", required=True, metavar="COMMAND")
    look = commands.add_parser(
        "look-here",
        help="look at the training on this host, and print the evidence as lines of JSON",
    )
    look.add_argument(
        "--slurm-job", default="", metavar="JOB", help="only processes of this SLURM job"
    )
    look.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="end the look after S seconds"
    )
    commands.add_parser("checks-here", help="check this host as stdin says")
    commands.add_parser("probe-here", help="run one probe as stdin says")
    commands.add_parser(
        "ready",
        help="check this host for SLURM: ready --slot prolog, taskprolog, epilog or healthcheck",
    )
    try:
        if is_for_a_slot(list(argv), os.environ):
            return ready_slot(argv)
        given = words.parse_args(list(argv))
        if given.command == "look-here":
            from trainprobe.attach.node_look import look_here

            return look_here(given.slurm_job, given.timeout)
        if given.command == "checks-here":
            from trainprobe.ready.remote_checks import checks_here

            return checks_here()
        if given.command == "ready":
            words.error(
                "of ready there are only the administrators' slots in here: ready --slot prolog"
            )
        from trainprobe.nodes.local_probe import probe_here

        return probe_here()
    except TrainprobeError as error:
        from trainprobe.redact import Redactor, clean

        sys.stderr.write(f"trainprobe: {clean(Redactor(os.environ).text(str(error))[0])}\n")
        return error.exit_code
