"""The model hub cannot be reached from the node.

Compute nodes often have no way to the internet. `from_pretrained` and `load_dataset` then retry for
minutes, on every rank or on the one that downloads first while the others wait for it.

It is recognised by frames of the hub's client below the wait, by a connect that is not answered,
and by the retries and errors that the client prints; a hub that answers only that it is busy (429,
5xx) counts as well. One that answers that there is no such repository, or that it is not open to
this token (401, 403, 404), was reached: that is a name or a token to mend, and `user-exception`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import goes_round, others_wait, who
from trainprobe.causes.phrases import fixes, short, subject, verb
from trainprobe.causes.remote_calls import connections, talking
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    first_to_fail,
    quote_after,
    statement,
    text_of,
    weigh_statement,
)
from trainprobe.facts import LogEvent, MainThread, Output, RankException
from trainprobe.signatures.messages import message


def _asking(scene: Scene) -> tuple[MainThread, ...]:
    """Threads in a network call, or in the pause before the next try, below the hub's client."""
    trying = [
        thread
        for thread in scene.threads(scene.suspects)
        if thread.leaf == "sleep" or (thread.moved and goes_round(scene, thread.rank or 0))
    ]
    return tuple(
        thread
        for thread in (*talking(scene), *trying)
        if any(HUB.search(frame.file) for frame in thread.frames)
    )


def _weigh(scene: Scene) -> Weighings:
    asking = _asking(scene)
    if asking:
        says = (
            f"{who(asking[0])} is in the hub's client at {asking[0].where} in {asking[0].looks}"
            " looks"
        )
        yield weighing(13, "suspects-stack", says, *asking)
        unanswered = [one for one in connections(scene) if one.state == "SYN_SENT"]
        if unanswered:
            yield weighing(
                13, "network", f"Its connect to {unanswered[0].remote} has no answer", *unanswered
            )
        elif connections(scene):
            says = f"Its connection to {connections(scene)[0].remote} is silent"
            yield weighing(6, "network", says, *connections(scene))
        yield from others_wait(scene)
    if scene.group.mode == "hang":
        tried = [
            event
            for event in scene.of(LogEvent)
            if event.event in ("hub-unreachable", "hub-retries", "hub-busy")
        ]
        if tried:
            yield weighing(
                10, "suspects-log", f"The output says: {tried[-1].line[:120]}", tried[-1]
            )
    else:
        found = tuple(weigh_statement(scene, WORDING))
        below = _client_failed(scene) if not found else None
        yield from found
        if below is not None:
            says = f"A connection failed in the hub's client: {short(below.message, 120)}"
            yield weighing(13, "suspects-log", says, below)
        elif not found and (fetched := _fetched(scene)) is not None:
            says = (
                f"A connection over HTTP could not be made: {short(fetched.message, 100)}; what a"
                " training fetches so is mostly a model, a tokenizer or a data set"
            )
            yield weighing(13, "suspects-log", says, fetched)
        elif not found and (broken := _broken_download(scene)) is not None:
            says = (
                f"An answer that was being read broke off ({short(text_of(broken), 80)}); who had"
                " asked for it the traceback does not show, and what a training reads so is mostly"
                " a model or a data set"
            )
            yield weighing(13, "suspects-log", says, broken)
        if found or below is not None:
            yield from first_to_fail(scene)
            refused = statement(scene, REFUSED)
            if refused is not None:  # it answered
                says = f"The hub was reached, and refused: {short(refused.text, 120)}"
                yield weighing(-26, "network", says, refused.fact)


def _client_failed(scene: Scene) -> RankException | None:
    """A connection that failed below the hub's client, whatever the words."""
    origin = scene.origin
    if origin is None or not re.search(TROUBLE, text_of(origin)):
        return None
    if any(HUB.search(frame.file) for frame in origin.frames):
        return origin
    # The first of a chain stands in the HTTP client; the hub's frames are those of the errors that
    # it became.
    inside = any(HTTP.search(frame.file) for frame in origin.frames)
    chain = any(
        HUB.search(output.tail) for output in scene.of(Output) if output.rank in (None, origin.rank)
    )
    return origin if inside and chain else None


def _fetched(scene: Scene) -> RankException | None:
    """A connection that could not be made inside the HTTP client, of which the traceback shows no
    client of a hub: a tokenizer, a data set or weights of another address.
    """
    origin = scene.origin
    if origin is None or not _UNMADE.search(text_of(origin)):
        return None
    return origin if any(HTTP.search(frame.file) for frame in origin.frames) else None


def _broken_download(scene: Scene) -> RankException | None:
    """A read that failed inside the HTTP client, of which nobody who called it is shown."""
    origin = scene.origin
    if origin is None or not origin.frames or not re.search(TROUBLE, text_of(origin)):
        return None
    inside = [frame for frame in origin.frames if HTTP.search(frame.file)]
    reads = any(_READS.search(frame.name) for frame in inside)
    return origin if reads and all(_BELOW.search(frame.file) for frame in origin.frames) else None


def _summary(scene: Scene) -> str:
    asking, found = _asking(scene), connections(scene)
    at = f" at {asking[0].where}" if asking and asking[0].where else ""
    stated = statement(scene, WORDING)
    if scene.group.mode != "hang" and not asking:
        what = quote_after(stated)
        return (
            f"{subject(scene)} could not reach the model hub, or the hub was too busy to"
            f" answer{what}"
        )
    return (
        f"{subject(scene)} {verb(scene.ranks, 'waits', 'wait')} for the model"
        f" hub{f' ({found[0].remote})' if found else ''}{at}, which cannot be reached"
    )


# How clients of model hubs say that the hub was not reached, and how that it was and refused.
HTTP = re.compile(
    r"/(?:httpx|httpcore|urllib3|requests|aiohttp)\d?/|/http/client\.py|/urllib/request\.py"
)
_UNMADE = re.compile(
    r"Connect(?:ion)?(?:Timeout|Error)|NewConnectionError|Max retries exceeded"
    r"|Errno (?:101|110|111|113)\b|NameResolutionError|Network is unreachable|No route to host"
)
_BELOW = re.compile(HTTP.pattern + r"|/(?:socket|ssl|http/client|contextlib)\.py$")
_READS = re.compile(
    r"^(?:_fp_)?read(?:into|_chunked)?$|^stream$|^iter_(?:content|raw|bytes)$|^_error_catcher$"
)
HUB = re.compile(
    r"/huggingface_hub/|/transformers/utils/hub\.py|/datasets/(?:load|utils/file_utils|download)"
    r"|/torch/hub\.py|/modelscope/|/timm/models/_hub|/kagglehub/"
)
HOSTS = r"(?:[\w-]{1,40}\.){0,4}(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope\.cn|download\.pytorch\.org|githubusercontent\.com|kaggle\.com)"  # noqa: E501
TROUBLE = message("hub-unreachable.trouble")
WORDING = message("hub-unreachable")
REFUSED = message("hub-unreachable.refused")


CAUSE = Cause(
    id="hub-unreachable",
    title="The model hub cannot be reached",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        See whether this node reaches it
            curl -sSI -m 5 https://huggingface.co | head -1
            env | grep -i -E 'proxy|HF_'
        Download beforehand, then go offline
            hf download ORGANISATION/MODEL   (on a node with internet)
            export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1
        Or use a mirror or proxy
            export HF_ENDPOINT=https://<MIRROR>   or   HTTPS_PROXY=http://<PROXY:PORT>
    """),
    would_settle="curl -sSI -m 5 https://huggingface.co on that node",
    refines="remote-service-wait",
    accounts_for=(
        "rank-stuck",
        "import-hang",
        "user-exception",
        "import-failure",
        "rank0-long-task",
    ),
    wording=WORDING,
)
