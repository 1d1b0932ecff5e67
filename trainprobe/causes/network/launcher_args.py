"""The script and its launcher do not agree on how a rank learns who it is.

`torch.distributed.launch` passed `--local-rank` where the script does not know it; a script that reads LOCAL_RANK was started with
plain `python`; an option has another name. The program ends before it trains.

It is recognised by argparse's words about an option, by a KeyError of a rank variable, or by torch's message that one is not set.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# argparse, os.environ, and torch/distributed/rendezvous.py (_env_error).
WORDING = r"unrecognized arguments:.*--local[-_]rank|KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'|environment variable (RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected"
USAGE = r"error: (unrecognized arguments|the following arguments are required|argument \S+: |ambiguous option)"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING, log_points=26)
        yield from first_to_fail(scene)
        return
    usage = said(scene, USAGE)
    ends = [end for end in scene.endings(scene.world) if end.how == "exited" and end.code == 2]  # argparse's own exit code
    if usage is not None:
        yield weighing(13, "suspects-log", f"The script does not know its arguments: {short(usage.text)}", usage.fact)
        if ends:
            yield weighing(10, "exit-status", f"{len(ends)} ranks ended with exit code 2, as a wrong argument does", *ends)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, USAGE)
    script = scene.plan.script.rsplit("/", 1)[-1] or "The script"
    return sentence(f"{script} and its launcher do not fit: {short(heard.text, 140) if heard else 'an argument or a rank variable is missing'}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Start it with torchrun", "torchrun --nproc-per-node N train.py …   (sets RANK, LOCAL_RANK, WORLD_SIZE)"),
        fix(scene, "Read the rank from the environment", "local_rank = int(os.environ['LOCAL_RANK'])   instead of an option --local-rank"),
        fix(scene, "Check the other arguments", "python SCRIPT --help"),
    )


CAUSE = Cause(
    id="launcher-args",
    title="Script and launcher do not fit",
    means="The script and the launcher disagree on arguments or on the variables of a rank.",
    telling="unrecognized arguments: --local-rank, KeyError: LOCAL_RANK, exit code 2 with a usage text.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="python SCRIPT --help, and the command line as the launcher starts it",
    refines="user-exception",
    wording=WORDING,
)
