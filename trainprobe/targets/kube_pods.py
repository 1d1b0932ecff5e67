"""What Kubernetes says of the pods of a job. Asks kubectl only, as the user of this machine may."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.redact import clean
from trainprobe.system.run import Ran, run

ASK_S = 20.0
MOST_PODS = 4096
MOST_BYTES = 64 * 2**20  # a pod is some 10 kB, and a large one 100
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
# RFC 1123, as the API server demands; nothing else may become a word of a command line.
NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
SELECTOR = re.compile(
    r"[A-Za-z0-9(][\w./=!,() -]{0,500}|![A-Za-z0-9][\w./=!,() -]{0,500}", re.ASCII
)


@dataclass(frozen=True)
class Pod:
    """A pod. `container` is where the training is looked for; `why_not` says why nobody can look
    into it, "" where somebody can. `node` is the host that it is on.
    """

    name: str
    namespace: str
    container: str
    node: str = ""
    why_not: str = ""


def kube_pods(selector: str, namespace: str = "", container: str = "") -> tuple[Pod, ...]:
    """Return the pods that `selector` names, such as `job-name=train`, in order of their names.

    `namespace` "" is that of kubectl's context; `container` "" is the pod's default one, or its
    first. Pods that have ended are left out where others run. Raises UsageError where there is no
    kubectl, it is refused, or no such pod is there.
    """
    if not SELECTOR.fullmatch(selector):
        raise UsageError(
            f"--kubectl takes a selector of labels, not {selector[:60]!r}.",
            "Such as: --kubectl job-name=train",
        )
    for option, value in (("--namespace", namespace), ("--container", container)):
        if value and not NAME.fullmatch(value):
            raise UsageError(f"{option} {value[:60]!r} is no name in Kubernetes.")
    where = ("--namespace", namespace) if namespace else ()
    argv = (
        "kubectl",
        "get",
        "pods",
        "--selector",
        selector,
        *where,
        "--output",
        "json",
        f"--request-timeout={ASK_S:.0f}s",
    )
    ran = run(argv, timeout_s=ASK_S, output_cap_bytes=MOST_BYTES)
    if ran.ended.how == "not_started":
        raise UsageError(
            "kubectl is not on this machine.",
            "Go to where you submit the job from, or look inside of a pod: kubectl exec POD --"
            " trainprobe attach.",
        )
    if ran.ended.how != "exited" or ran.ended.code != 0 or ran.cut:
        raise UsageError(
            f"kubectl get pods: {_complaint(ran)}", f"Try: kubectl get pods --selector {selector}"
        )
    pods = pods_of(ran.stdout, container)
    if not pods:
        raise UsageError(
            "No pod has the labels"
            f" {selector!r}{f' in namespace {namespace}' if namespace else ''}.",
            "See them: kubectl get pods --show-labels",
        )
    live = [pod for pod in pods if not pod.why_not.startswith("it has ended")]
    return tuple(sorted(live or pods, key=lambda pod: _place(pod.name)))[:MOST_PODS]


def pods_of(answer: bytes, container: str = "") -> list[Pod]:
    """The pods in `kubectl get pods --output json`. Raises UsageError where it is none."""
    try:
        document = json.loads(answer)
        rows = document["items"]
        assert isinstance(rows, list)
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError) as error:
        raise UsageError("kubectl get pods printed no list of pods.") from error
    return [pod for row in rows if (pod := _pod(row, container)) is not None]


def _pod(row: object, container: str) -> Pod | None:
    meta, spec, status = (_part(row, name) for name in ("metadata", "spec", "status"))
    name, namespace = meta.get("name"), meta.get("namespace", "default")
    if not (
        isinstance(name, str)
        and NAME.fullmatch(name)
        and isinstance(namespace, str)
        and NAME.fullmatch(namespace)
    ):
        return None
    there = [
        row
        for row in (_part(each, "").get("name") for each in _rows(spec.get("containers")))
        if isinstance(row, str) and NAME.fullmatch(row)
    ]
    default = _part(meta, "annotations").get(DEFAULT_CONTAINER)
    chosen = container or (default if default in there else "") or next(iter(there), "")
    node = spec.get("nodeName")
    why = (
        _why_not(meta, status, chosen)
        if chosen in there
        else f"it has no container {container}; it has {', '.join(there)[:200]}"
    )
    return Pod(name, namespace, chosen, clean(node)[:253] if isinstance(node, str) else "", why)


def _why_not(meta: Mapping[str, Any], status: Mapping[str, Any], container: str) -> str:
    """Why a container cannot be entered, in the cluster's words; "" where it runs."""
    phase = str(status.get("phase", "Unknown"))[:40]
    state = next(
        (
            _part(statu, "state")
            for statu in _rows(status.get("containerStatuses"))
            if _part(statu, "").get("name") == container
        ),
        {},
    )
    waits, ended = _part(state, "waiting").get("reason"), _part(state, "terminated").get("reason")
    if phase in ("Succeeded", "Failed"):
        return f"it has ended: {clean(str(status.get('reason') or ended or phase))[:100]}"
    if ended:
        return f"its container {container} has ended: {clean(str(ended))[:100]}"
    if meta.get("deletionTimestamp"):
        # it is being ended, which may be what hangs: it can be entered as long as it is there
        return ""
    if phase != "Running" or waits:
        unmet = next(
            (
                _part(statu, "")
                for statu in _rows(status.get("conditions"))
                if _part(statu, "").get("status") == "False"
            ),
            {},
        )
        more = waits or unmet.get("reason") or ""
        return f"it is {phase}{f' ({clean(str(more))[:100]})' if more else ''}"
    return ""


def _part(value: object, name: str) -> Mapping[str, Any]:
    found = value.get(name) if name and isinstance(value, Mapping) else value
    return found if isinstance(found, Mapping) else {}


def _rows(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else []


def _place(name: str) -> list[tuple[int, int, str]]:
    """train-10 comes after train-9."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d{1,18})", name)
    ]


def _complaint(ran: Ran) -> str:
    lines = ran.stderr[-4000:].decode("utf-8", "replace").strip().splitlines()
    return clean(lines[-1])[:300] if lines else ran.ended.reason or "it said nothing"
