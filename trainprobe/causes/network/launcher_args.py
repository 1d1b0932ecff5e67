"""The script and its launcher do not agree on how a rank learns who it is.

`torch.distributed.launch` passed `--local-rank` where the script does not know it; a script that
reads LOCAL_RANK was started with plain `python`; an option has another name. The program ends
before it trains.

It is recognised by argparse's words about an option, by a KeyError of a rank variable, by torch's
message that one is not set or that there is no process group, and by a launcher or script that is
not found.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    failed_of_something_else,
    final_exceptions,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.facts import LogJob, RankAnnounced
from trainprobe.facts.announced_ranks import announced_twice
from trainprobe.model.ranks import fold_ranks
from trainprobe.signatures.messages import message

WORDING = message("launcher-args")
SHOWS = ("launcher-args", "group-missing", "script-missing", "launcher-missing")
# `int(os.environ.get("LOCAL_RANK"))` where nobody set it.
_READS_RANK = re.compile(
    r"(?:environ|getenv)[^\n]{0,30}[\"'](?:LOCAL_|NODE_)?(?:RANK|WORLD_SIZE)|\blocal_rank\b"
)
USAGE = message("launcher-args.usage")

# What a plan asks that does not fit; what has an illness of its own (a port in use, a name that is
# not found) is told there.
PLAN = tuple(
    f"plan.{name}"
    for name in (
        "ranks",
        "tasks",
        "ntasks",
        "cpus",
        "mem",
        "time",
        "signal",
        "rendezvous",
        "environment",
        "software",
        "steps",
        "limits",
        "paths",
        "output",
        "script",
        "site",
        "exitcodes",
    )
)


def _weigh(scene: Scene) -> Weighings:
    if twice := _twice(scene):
        says = f"Launchers of two hosts take themselves for the same node: {_numbered_twice(twice)}"
        yield weighing(26, "suspects-log", says, *twice[:3])
        return
    ignored = scene.events("address-not-used")
    if ignored and _launcher_failed(scene):
        says = (
            "torchrun itself failed, after it had said that it does not use the address that it"
            f" was given: {short(ignored[0].line, 100)}"
        )
        yield weighing(13, "suspects-log", says, ignored[0])
    if statement(scene, WORDING) is not None:
        yield from weigh_statement(
            scene,
            WORDING,
            log_points=6 if failed_of_something_else(scene) and not _asks(scene) else 26,
        )
        yield from first_to_fail(scene)
        return
    unset = [
        exception
        for exception in final_exceptions(scene)[:1]
        if exception.type in ("TypeError", "AttributeError")
        and "None" in exception.message
        and exception.frames
        and _READS_RANK.search(exception.frames[-1].text)
    ]
    if unset:
        says = f"A rank variable is not set: {unset[0].frames[-1].text.strip()[:100]}"
        yield weighing(26, "source", says, unset[0])
    printed = startup_failure(scene, WORDING, *SHOWS)
    if printed is not None and (lines(scene, *SHOWS) or printed.decides):
        yield from weigh_startup_failure(scene, printed, sign=26)
        return
    usage = statement(scene, USAGE)
    # argparse's own exit code
    ends = [end for end in scene.endings(scene.world) if end.how == "exited" and end.code == 2]
    if usage is not None:
        only = usage.text.startswith("usage: ") and "error: " not in usage.text
        words = "The script printed how it is used, as it does with wrong arguments"
        yield quote(13, words if only else "The script does not know its arguments", usage)
        if ends:
            says = f"{len(ends)} ranks ended with exit code 2, as a wrong argument does"
            yield weighing(10, "exit-status", says, *ends)
    elif (
        ends
        and scene.of(LogJob)
        and scene.origin is None
        and len(ends) == len(scene.endings(scene.world))
    ):
        says = (
            "It ended with exit code 2 and without a traceback, as Python does with wrong arguments"
            " or a script that is not there"
        )
        yield weighing(13, "exit-status", says, *ends)


def _asks(scene: Scene) -> bool:
    """Are the last words themselves about arguments or variables?"""
    return any(
        re.search(WORDING, f"{exception.type}: {exception.message}")
        for exception in final_exceptions(scene)[:1]
    )


def _twice(scene: Scene) -> tuple[RankAnnounced, ...]:
    return announced_twice(scene.of(RankAnnounced))


def _numbered_twice(twice: tuple[RankAnnounced, ...]) -> str:
    ranks = sorted({one.number for one in twice})
    return f"ranks {fold_ranks(ranks)} announced themselves twice, and not all {twice[0].of} came"


def _launcher_failed(scene: Scene) -> bool:
    """Does the traceback stand in torchrun, before any rank was started?"""
    origin = scene.origin
    return origin is not None and any(
        frame.file.endswith("torch/distributed/run.py") for frame in origin.frames
    )


def _summary(scene: Scene) -> str:
    if twice := _twice(scene):
        return f"Two launchers gave out the same numbers: {_numbered_twice(twice)}"
    found = (
        statement(scene, WORDING)
        or statement(scene, USAGE)
        or startup_failure(scene, WORDING, *SHOWS)
    )
    script = scene.plan.script.rsplit("/", 1)[-1] or "The script"
    return (
        f"{script} and its launcher do not fit:"
        f" {short(found.text, 140) if found else 'an argument or a rank variable is missing'}"
    )


CAUSE = Cause(
    id="launcher-args",
    title="Script and launcher do not fit",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Start it with torchrun
            torchrun --nproc-per-node <N> train.py …   (sets RANK, LOCAL_RANK, WORLD_SIZE)
        Read the rank from the environment
            local_rank = int(os.environ['LOCAL_RANK'])   instead of an option --local-rank
        Check the other arguments
            python <SCRIPT> --help
    """),
    ranks=nobody,
    would_settle="python <SCRIPT> --help, and the command line as the launcher starts it",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("has a launch that does not fit", "have a launch that does not fit"), checks=PLAN
    ),
)
