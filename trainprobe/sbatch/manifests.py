"""Kubernetes manifests that start a training, as groups of pods: Job, PyTorchJob, TrainJob, JobSet,
LeaderWorkerSet. Read with YAML's safe loader, within bounds; nothing is sent to a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.sbatch.launches import Launch, launches
from trainprobe.sbatch.script import read_script

MOST_TEXT = 300_000
MOST_DOCUMENTS = 50
MOST_PLACES = 20_000
MOST_PODS = 100_000
SHARED = "/dev/shm"  # noqa: S108 - the name in the pod, where nothing is written
_OF_ONE_POD = re.compile(r"index|replica|role|rank|pod-name|component")
_GPU = re.compile(r"(?:nvidia\.com/(?:gpu|mig-.*)|amd\.com/gpu|gpu\.intel\.com/.*|.*\.com/gpu)")
# The variables that each controller sets in its pods: training-operator's PyTorchJob v1, trainer's
# torch runtime, Job with Indexed completions, JobSet, LeaderWorkerSet.
_PET = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
_RANKS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SETS: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": (*_RANKS, *_PET),
    "TrainJob": (*_PET, "JOB_COMPLETION_INDEX"),
    "LeaderWorkerSet": ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"),
}


@dataclass(frozen=True)
class Pods:
    """Pods of one template. `count` is how many of them run together; `gpus` those of one
    container; `shared_memory` is memory, disk, host, or "" for the default of 64 MB.
    """

    name: str
    count: int
    line: int
    container: Mapping[str, Any]
    containers: tuple[str, ...]
    template: Mapping[str, Any]
    launch: Launch | None
    text: str
    environ: Mapping[str, str]
    restart: str = ""

    @property
    def limits(self) -> Mapping[str, Any]:
        return _mapping(_mapping(self.container.get("resources")).get("limits"))

    @property
    def requests(self) -> Mapping[str, Any]:
        return _mapping(_mapping(self.container.get("resources")).get("requests"))

    @property
    def gpus(self) -> int | None:
        """GPUs of one pod, None where it requests none."""
        found = [whole(value) for name, value in self.limits.items() if _GPU.fullmatch(str(name))]
        known = [count for count in found if count is not None]
        return sum(known) if known else None

    @property
    def shared_memory(self) -> str:
        if self.template.get("hostIPC") is True:
            return "host"
        volumes = {
            str(volume.get("name")): volume for volume in _mappings(self.template.get("volumes"))
        }
        for mount in _mappings(self.container.get("volumeMounts")):
            if str(mount.get("mountPath", "")).rstrip("/") == SHARED:
                volume = volumes.get(str(mount.get("name")), {})
                medium = _mapping(volume.get("emptyDir")).get("medium")
                return "memory" if medium == "Memory" else "disk"
        return ""


@dataclass(frozen=True)
class Workload:
    """One object that starts a training, with its groups of pods. `spec` is its own part."""

    kind: str
    name: str
    line: int
    spec: Mapping[str, Any]
    pods: tuple[Pods, ...]
    sets: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many pods take part in the training."""
        return sum(pods.count for pods in self.pods if pods.launch is not None)


@dataclass(frozen=True)
class Manifest:
    """What a file holds. `shared` are the services that stand for several pods; `trouble` says why
    it could not be read, "" where it could.
    """

    text: str
    workloads: tuple[Workload, ...] = ()
    services: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    trouble: str = ""
    lines: Mapping[tuple[Any, ...], int] = field(default_factory=dict)


def is_manifest(text: str) -> bool:
    """Whether a text is a Kubernetes object rather than a script."""
    return not text.startswith("#!") and bool(
        re.search(r"^apiVersion:\s*\S", text[:MOST_TEXT], re.MULTILINE)
        and re.search(r"^kind:\s*\S", text[:MOST_TEXT], re.MULTILINE)
    )


def read_manifest(text: str) -> Manifest:
    """Read all objects of a file. It never raises, whatever the text holds."""
    import yaml

    text = text[:MOST_TEXT]
    documents: list[tuple[Mapping[str, Any], dict[tuple[Any, ...], int]]] = []
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node() and len(documents) < MOST_DOCUMENTS:
            node = loader.get_node()
            lines = {}
            for path, line in _places(node):
                lines[path] = line
                if len(lines) >= MOST_PLACES:
                    break
            data = loader.construct_document(node)
            if isinstance(data, Mapping):
                documents.append((data, lines))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        return Manifest(
            text, trouble=f"It is not plain YAML{where}: a template must be filled first"
        )
    services = tuple(
        str(_mapping(data.get("metadata")).get("name"))
        for data, _ in documents
        if data.get("kind") == "Service"
    )
    shared = tuple(
        str(_mapping(data.get("metadata")).get("name"))
        for data, _ in documents
        if data.get("kind") == "Service"
        and (selector := _mapping(_mapping(data.get("spec")).get("selector")))
        and not any(_OF_ONE_POD.search(str(name)) for name in selector)
    )
    found = [_workload(data, lines) for data, lines in documents]
    return Manifest(text, tuple(one for one in found if one is not None), services, shared)


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The line of each key and item."""
    if len(path) > 40:
        return
    values = node.value if isinstance(node.value, list) else []
    for number, entry in enumerate(values[:2000]):
        if isinstance(entry, tuple):
            key, value = entry
            yield (*path, key.value), key.start_mark.line + 1
            yield from _places(value, (*path, key.value))
        else:
            yield (*path, number), entry.start_mark.line + 1
            yield from _places(entry, (*path, number))


def _workload(data: Mapping[str, Any], lines: Mapping[tuple[Any, ...], int]) -> Workload | None:
    kind, spec = str(data.get("kind")), _mapping(data.get("spec"))
    readers = {
        "Job": _job,
        "PyTorchJob": _pytorch_job,
        "TrainJob": _train_job,
        "JobSet": _job_set,
        "LeaderWorkerSet": _leader_worker_set,
    }
    if kind not in readers:
        return None
    sets = _SETS.get(kind, ())
    if kind in ("Job", "JobSet") and "Indexed" in str(spec.get("completionMode", "")):
        sets = (*sets, "JOB_COMPLETION_INDEX")
    if kind == "JobSet":
        sets = (*sets, "JOB_COMPLETION_INDEX", "JOB_INDEX")
    groups = []
    for name, count, path, template, restart in readers[kind](spec):
        pod = _pods(name, min(count, MOST_PODS), lines.get(path, 1), template, restart, sets)
        if pod is not None:
            groups.append(pod)
    name = str(_mapping(data.get("metadata")).get("name", ""))[:200]
    line = lines.get(("kind",), 1)
    return Workload(kind, name, line, spec, tuple(groups), sets)


_Group = tuple[str, int, tuple[Any, ...], Mapping[str, Any], str]
"""Name, number of pods, the place of the template, the pod's spec, and the restart policy."""


def _job(spec: Mapping[str, Any], path: tuple[Any, ...] = ("spec",)) -> Iterator[_Group]:
    template = _mapping(_mapping(spec.get("template")).get("spec"))
    count = whole(spec.get("parallelism")) or 1
    yield "pods", count, (*path, "template"), template, str(template.get("restartPolicy", ""))


def _pytorch_job(spec: Mapping[str, Any]) -> Iterator[_Group]:
    for role, given in _mapping(spec.get("pytorchReplicaSpecs")).items():
        group = _mapping(given)
        template = _mapping(_mapping(group.get("template")).get("spec"))
        replicas = whole(group.get("replicas"))
        count = 1 if replicas is None else replicas
        path = ("spec", "pytorchReplicaSpecs", role)
        yield str(role), count, path, template, str(group.get("restartPolicy", ""))


def _train_job(spec: Mapping[str, Any]) -> Iterator[_Group]:
    trainer = _mapping(spec.get("trainer"))
    container = {
        "command": trainer.get("command"),
        "args": trainer.get("args"),
        "env": trainer.get("env"),
        "resources": trainer.get("resourcesPerNode"),
    }
    count = whole(trainer.get("numNodes")) or 1
    yield "trainer", count, ("spec", "trainer"), {"containers": [container]}, ""


def _job_set(spec: Mapping[str, Any]) -> Iterator[_Group]:
    for number, replicated in enumerate(_mappings(spec.get("replicatedJobs"))):
        job = _mapping(_mapping(replicated.get("template")).get("spec"))
        replicas = whole(replicated.get("replicas")) or 1
        path = ("spec", "replicatedJobs", number)
        for _, count, _, template, restart in _job(job):
            yield str(replicated.get("name", "")), count * replicas, path, template, restart


def _leader_worker_set(spec: Mapping[str, Any]) -> Iterator[_Group]:
    group = _mapping(spec.get("leaderWorkerTemplate"))
    size = whole(group.get("size")) or 1
    restart = str(group.get("restartPolicy", ""))
    worker = _mapping(_mapping(group.get("workerTemplate")).get("spec"))
    path = ("spec", "leaderWorkerTemplate")
    if "leaderTemplate" in group:
        leader = _mapping(_mapping(group.get("leaderTemplate")).get("spec"))
        yield "leader", 1, (*path, "leaderTemplate"), leader, restart
        size -= 1
    if size > 0:
        yield "workers", size, (*path, "workerTemplate"), worker, restart


def _pods(
    name: str,
    count: int,
    line: int,
    template: Mapping[str, Any],
    restart: str,
    sets: tuple[str, ...],
) -> Pods | None:
    containers = _mappings(template.get("containers"))
    if not containers:
        return None
    read = [(container, *_launch(container, sets)) for container in containers]
    chosen = next((row for row in read if row[1] is not None), read[0])
    container, launch, text, environ = chosen
    names = tuple(str(one.get("name", "")) for one in containers)
    return Pods(name, count, line, container, names, template, launch, text, environ, restart)


def _launch(
    container: Mapping[str, Any], sets: tuple[str, ...]
) -> tuple[Launch | None, str, dict[str, str]]:
    """What the container starts, the command as a shell text, and the variables of the manifest."""
    environ = {
        str(entry.get("name")): str(entry.get("value", f"${{{entry.get('name')}}}"))
        for entry in _mappings(container.get("env"))
    }
    words = [
        str(word)[:20_000]
        for part in ("command", "args")
        if isinstance(container.get(part), list)
        for word in container[part]
    ][:400]
    # $(NAME) in a command is the kubelet's, and names a variable of the manifest
    known = {*environ, *sets}
    words = [
        re.sub(
            r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)",
            lambda match: (
                environ.get(match[1], f"${{{match[1]}}}") if match[1] in known else match[0]
            ),
            word,
        )
        for word in words
    ]
    shell = words[:1] and re.fullmatch(r"(?:.*/)?(?:ba|z|da)?sh", words[0])
    text = ""
    if shell:
        text = "\n".join(word for word in words[1:] if not word.startswith("-"))
    elif words:
        text = " ".join(shlex.quote(word) for word in words)
    given = {**{name: f"${{{name}}}" for name in sets}, **environ}  # set, with a value unknown here
    found = launches(read_script(f"#!/bin/bash\n{text}\n", (), given)) if text else ()
    return (found[-1] if found else None), text, environ


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    rows = value[:2000] if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, Mapping)]


def whole(value: Any) -> int | None:
    """A count of a manifest, which may be a number or a text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 10**9 else None
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value) else None


def size_of(value: Any) -> float | None:
    """A quantity in bytes: `64Gi`, `500M`, `1e9`."""
    match = re.fullmatch(
        r"(\d+(?:\.\d+)?(?:e\d{1,2})?)(Ki|Mi|Gi|Ti|k|M|G|T|m)?", str(value).strip()
    )
    if match is None:
        return None
    return float(match[1]) * _UNITS[match[2] or ""]


_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_UNITS = {**_BINARY, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "": 1.0}
