"""The script and its launcher do not agree on how a rank learns who it is.

`torch.distributed.launch` passed `--local-rank` where the script does not know it; a script that reads LOCAL_RANK was started with
plain `python`; an option has another name. The program ends before it trains.

It is recognised by argparse's words about an option, by a KeyError of a rank variable, by torch's message that one is not set or that there is no process
group, and by a launcher or script that is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.told import failed_of_something_else, last_words, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, LogJob
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# argparse, os.environ, and torch/distributed/rendezvous.py (_env_error).
WORDING = (
    r"unrecognized arguments:.*--local[-_]rank|KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|NODE_RANK|SLURM_\w{4,20}|OMPI_COMM_\w{4,24}|PMI_RANK)'"
    r"|environment variable (LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected|Default process group (?:has not been|is not) initialized|rendezvous: (?:rank|world size) parameter missing"
    r"|Unsupported nproc_per_node value|is not in \"MIN:MAX\" format|Cuda is not available\.|at least 2 processes to use `--multi_gpu`|--local[-_]rank=\d{1,3}[^\n]{0,400}returned non-zero exit status 2\b|No module named '?torch\.distributed\.run(?!'; )"
)
SHOWS = ("launcher-args", "group-missing", "script-missing", "launcher-missing")
# `int(os.environ.get("LOCAL_RANK"))` where nobody set it.
_READS_RANK = re.compile(r"(?:environ|getenv)[^\n]{0,30}[\"'](?:LOCAL_|NODE_)?(?:RANK|WORLD_SIZE)|\blocal_rank\b")
USAGE = r"error: (unrecognized arguments|the following arguments are required|argument \S+: |ambiguous option)"

# What a plan asks that does not fit; what has an illness of its own (a port in use, a name that is not found) is told there.
PLAN = tuple(
    f"plan.{name}"
    for name in ("ranks", "tasks", "ntasks", "cpus", "mem", "time", "signal", "rendezvous", "limits", "paths", "output", "script", "site", "exitcodes")
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING, log_points=6 if failed_of_something_else(scene) and not _asks(scene) else 26)
        yield from first_to_fail(scene)
        return
    unset = [
        one
        for one in last_words(scene)[:1]
        if one.type in ("TypeError", "AttributeError") and "None" in one.message and one.frames and _READS_RANK.search(one.frames[-1].text)
    ]
    if unset:
        yield weighing(26, "source", f"A rank variable is not set: {unset[0].frames[-1].text.strip()[:100]}", unset[0])
    printed = told(scene, WORDING, *SHOWS)
    if printed is not None and (lines(scene, *SHOWS) or printed.decides):
        yield from weigh_told(scene, printed, sign=26)
        return
    usage = said(scene, USAGE)
    ends = [end for end in scene.endings(scene.world) if end.how == "exited" and end.code == 2]  # argparse's own exit code
    if usage is not None:
        yield weighing(13, "suspects-log", f"The script does not know its arguments: {short(usage.text)}", usage.fact)
        if ends:
            yield weighing(10, "exit-status", f"{len(ends)} ranks ended with exit code 2, as a wrong argument does", *ends)
    elif ends and facts.of(LogJob, cell=scene.cell) and scene.origin is None and len(ends) == len(scene.endings(scene.world)):
        yield weighing(
            13, "exit-status", "It ended with exit code 2 and without a traceback, as Python does with wrong arguments or a script that is not there", *ends
        )


def _asks(scene: Scene) -> bool:
    """Are the last words themselves about arguments or variables?"""
    return any(re.search(WORDING, f"{one.type}: {one.message}") for one in last_words(scene)[:1])


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, USAGE) or told(scene, WORDING, *SHOWS)
    script = scene.plan.script.rsplit("/", 1)[-1] or "The script"
    return sentence(f"{script} and its launcher do not fit: {short(heard.text, 140) if heard else 'an argument or a rank variable is missing'}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Start it with torchrun", "torchrun --nproc-per-node <N> train.py …   (sets RANK, LOCAL_RANK, WORLD_SIZE)"),
        fix(scene, "Read the rank from the environment", "local_rank = int(os.environ['LOCAL_RANK'])   instead of an option --local-rank"),
        fix(scene, "Check the other arguments", "python <SCRIPT> --help"),
    )


CAUSE = readied(
    Cause(
        id="launcher-args",
        title="Script and launcher do not fit",
        means="The script and the launcher disagree on arguments or on the variables of a rank.",
        telling="unrecognized arguments: --local-rank, KeyError: LOCAL_RANK, exit code 2 with a usage text.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="python <SCRIPT> --help, and the command line as the launcher starts it",
        refines="user-exception",
        wording=WORDING,
    ),
    Signs(says=("has a launch that does not fit", "have a launch that does not fit"), checks=PLAN),
)
