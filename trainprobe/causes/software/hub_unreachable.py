"""The model hub cannot be reached from the node.

Compute nodes often have no way to the internet. `from_pretrained` and `load_dataset` then retry for minutes, on every rank or on the one that
downloads first while the others wait for it.

It is recognised by frames of the hub's client below the wait, by a connect that is not answered, and by the retries and errors that the client
prints. A cache that is complete rules it out, because then nothing is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.ends import goes_round, others_wait, who
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.software.remote_service_wait import connections, talking
from trainprobe.causes.spoken import first_to_fail, spoken
from trainprobe.causes.words import fix, sentence, subject, verb
from trainprobe.facts import Facts, LogEvent, MainThread
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

HUB = re.compile(
    r"/huggingface_hub/|/transformers/utils/hub\.py|/datasets/(?:load|utils/file_utils|download)|/torch/hub\.py|/modelscope/|/timm/models/_hub|/kagglehub/"
)
WORDING = (
    r"We couldn't connect to 'https?://|Max retries exceeded with url|LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't reach the Hub"
    r"|Cannot reach (?:the Hub|https://)|HTTPSConnectionPool\(host='(?:\w+\.)*huggingface"
)


def _asking(scene: Scene) -> tuple[MainThread, ...]:
    """Threads in a network call, or in the pause before the next try, below the hub's client."""
    trying = [thread for thread in scene.threads(scene.suspects) if thread.leaf == "sleep" or (thread.moved and goes_round(scene, thread.rank or 0))]
    return tuple(thread for thread in (*talking(scene), *trying) if any(HUB.search(frame.file) for frame in thread.frames))


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    asking = _asking(scene)
    if asking:
        yield weighing(13, "suspects-stack", f"{who(asking[0])} is in the hub's client at {asking[0].where} in {asking[0].looks} looks", *asking)
        unanswered = [one for one in connections(scene) if one.state == "SYN_SENT"]
        if unanswered:
            yield weighing(13, "network", f"Its connect to {unanswered[0].remote} has no answer", *unanswered)
        elif connections(scene):
            yield weighing(6, "network", f"Its connection to {connections(scene)[0].remote} is silent", *connections(scene))
        yield from others_wait(scene)
    if group.mode == "hang":
        tried = [event for event in scene.facts.of(LogEvent, cell=scene.cell) if event.event == "hub-unreachable"]
        if tried:
            yield weighing(10, "suspects-log", f"The output says: {tried[-1].line[:120]}", tried[-1])
    else:
        heard = tuple(spoken(scene, WORDING))
        yield from heard
        if heard:
            yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    asking, found = _asking(scene), connections(scene)
    at = f" at {asking[0].where}" if asking and asking[0].where else ""
    return sentence(
        f"{subject(scene)} {verb(group.ranks, 'waits', 'wait')} for the model hub{f' ({found[0].remote})' if found else ''}{at}, which cannot be reached"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See whether this node reaches it", "curl -sSI -m 5 https://huggingface.co | head -1", "env | grep -i -E 'proxy|HF_'"),
        fix(
            scene,
            "Download beforehand, then go offline",
            "hf download ORGANISATION/MODEL   (on a node with internet)",
            "export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1",
        ),
        fix(scene, "Or use a mirror or proxy", "export HF_ENDPOINT=https://MIRROR   or   HTTPS_PROXY=http://PROXY:PORT"),
    )


CAUSE = Cause(
    id="hub-unreachable",
    title="The model hub cannot be reached",
    means="The model hub cannot be reached from the node.",
    telling="Frames of the hub's client and a connect without an answer; retries and connection errors towards the hub.",
    modes=("hang", "slow", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="curl -sSI -m 5 https://huggingface.co on that node",
    refines="remote-service-wait",
    accounts_for=("rank-stuck", "import-hang", "user-exception"),
    wording=WORDING,
)
