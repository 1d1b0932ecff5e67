"""What is wrong with a Kubernetes manifest that starts a training: pods, ranks and GPUs that do not
agree, a meeting place that the pods do not share, shared memory, restarts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.manifests import (
    SHARED,
    Manifest,
    Pods,
    Workload,
    read_manifest,
    size_of,
    whole,
)
from trainprobe.sbatch.numbers import counted

SCRIPT, TASKS, GPUS, RENDEZVOUS, ENVIRONMENT, MEMORY, CODES = ALL = tuple(
    Check(f"plan.{name}")
    for name in ("script", "tasks", "gpus", "rendezvous", "environment", "mem", "exitcodes")
)
_LOOPBACK = re.compile(r"(?:localhost|127\.[\d.]+|::1|0\.0\.0\.0)(?::\d+)?")
_LOOKED_UP = re.compile(
    r"(?:getent\s+(?:a?hosts(?:v4)?)|nslookup|dig\s+\+short|host)\s+([a-z0-9][a-z0-9.-]*)"
)
_LEAST_SHM = 2**30
_TEMPLATE = re.compile(
    r"^[\s-]*(?:image|replicas|namespace|parallelism|size|\S+/gpu):\s*[\"']?\$", re.MULTILINE
)
"""A value that envsubst fills before anything is sent to the cluster."""
_OK = {
    "plan.script": "The manifest is read",
    "plan.tasks": "Pods and ranks agree",
    "plan.gpus": "No rank shares a GPU",
    "plan.rendezvous": "The pods know where they meet",
    "plan.environment": "The command gets the variables that it names",
    "plan.mem": "The pods have shared memory",
    "plan.exitcodes": "Restarts fit the training",
}


def check_manifest(text: str) -> tuple[Finding, ...]:
    """Return what is wrong with the objects of a file, one finding at least for each check."""
    manifest = read_manifest(text)
    if manifest.trouble or not manifest.workloads:
        says = (
            manifest.trouble or "It holds no Job, PyTorchJob, TrainJob, JobSet or LeaderWorkerSet"
        )
        return tuple(check.unknown(says) for check in ALL[:1]) + tuple(
            check.skip("The manifest shows no training") for check in ALL[1:]
        )
    found = [finding for one in manifest.workloads for finding in _workload(manifest, one)]
    started = any(pods.launch for one in manifest.workloads for pods in one.pods)
    for check in ALL:
        if not any(finding.id == check.id for finding in found):
            skipped = not started and check is not SCRIPT
            says = "The command of the pods starts no launcher and no Python program that is known"
            found.append(check.skip(says) if skipped else check.ok(_OK[check.id]))
    return tuple(found)


def _workload(manifest: Manifest, work: Workload) -> Iterator[Finding]:
    yield from _shape(work)
    for pods in work.pods:
        yield from _resources(pods)
        if work.kind in ("Job", "PyTorchJob"):  # the others may add volumes by claim templates
            yield from _mounts(pods)
        if not _TEMPLATE.search(manifest.text):
            yield from _command(work, pods)
        if pods.launch is not None:
            yield from _counts(work, pods)
            yield from _meeting(manifest, work, pods)
            yield from _shared_memory(pods)
    yield from _restarts(work)


def _shape(work: Workload) -> Iterator[Finding]:
    if work.kind == "PyTorchJob":
        for pods in work.pods:
            if "pytorch" not in pods.containers:
                says = (
                    f"{pods.name} of PyTorchJob {work.name} has no container named pytorch:"
                    " the operator refuses it"
                )
                yield SCRIPT.fail(says, "name: pytorch", pods.line)
            if pods.name == "Master" and pods.count != 1:
                says = f"PyTorchJob {work.name} has {pods.count} masters: there must be one"
                yield SCRIPT.fail(says, "replicas: 1 of Master, more of Worker", pods.line)
    if work.kind != "Job":
        return
    parallel, completions = (whole(work.spec.get(name)) for name in ("parallelism", "completions"))
    if (parallel or 1) > 1 and completions is not None and completions < (parallel or 1):
        says = (
            f"Job {work.name} has {completions} completions and runs that many of its {parallel}"
            " pods at most"
        )
        yield TASKS.likely(says, f"completions: {parallel}", work.line, str(completions))


def _counts(work: Workload, pods: Pods) -> Iterator[Finding]:
    """The launcher's nodes and ranks against pods and GPUs."""
    launch = pods.launch
    if launch is None:
        return
    given = launch.options.get("nnodes") or launch.options.get("num-machines") or ""
    machines = launch.machines if given else None
    elastic = work.spec.get("elasticPolicy")
    if machines and not machines[0] <= work.nodes <= machines[1] and not elastic:
        says = (
            f"{launch.program} of {pods.name} takes {counted(machines[1], 'node')}, and"
            f" {work.kind} {work.name} has {counted(work.nodes, 'pod')}"
        )
        if machines[0] > work.nodes:
            says += ": it would wait for ever"
        yield TASKS.fail(says, f"--nnodes={work.nodes}", pods.line, given)
    ranks = launch.per_node if launch.program != "python" else None
    option = {"torchrun": "nproc-per-node", "accelerate": "num-processes"}.get(launch.program, "")
    if option not in launch.options:
        of_spec = work.spec.get("nprocPerNode") or _trainer(work).get("numProcPerNode")
        ranks = whole(of_spec)
    if ranks is None:
        return
    if pods.gpus is not None and ranks > pods.gpus:
        says = (
            f"{pods.name} starts {counted(ranks, 'rank')} in a pod that has"
            f" {counted(pods.gpus, 'GPU')}: two ranks cannot share one"
        )
        yield GPUS.fail(says, f"--nproc-per-node={pods.gpus}", pods.line, str(ranks))
    elif pods.gpus is not None and ranks < pods.gpus and launch.program == "torchrun":
        idle = pods.gpus - ranks
        says = f"{pods.name} starts {counted(ranks, 'rank')}: {idle} GPUs of a pod stay idle"
        yield TASKS.likely(says, f"--nproc-per-node={pods.gpus}", pods.line, str(ranks))


def _trainer(work: Workload) -> dict[str, object]:
    found = work.spec.get("trainer")
    return dict(found) if isinstance(found, dict) else {}


def _meeting(manifest: Manifest, work: Workload, pods: Pods) -> Iterator[Finding]:
    launch = pods.launch
    if launch is None or work.nodes < 2:
        return
    options, line = launch.options, pods.line
    endpoint = options.get("rdzv-endpoint") or options.get("master-addr") or ""
    address = endpoint or pods.environ.get("MASTER_ADDR", "")
    uses = bool(endpoint) or launch.program != "torchrun"
    if uses and _LOOPBACK.fullmatch(address):
        says = f"{pods.name} meets at {address}, which is each of {work.nodes} pods itself"
        yield RENDEZVOUS.fail(says, "the name of the first pod's service", line, address)
        return
    for name in ("node-rank", "machine-rank"):
        fixed = options.get(name, "")
        if fixed.isdecimal() and pods.count > 1:
            says = f"--{name}={fixed} of {pods.name} is the same in {pods.count} pods"
            yield RENDEZVOUS.fail(says, "the variable that numbers the pods", line, fixed)
            return
    for name in ("RANK", "NODE_RANK", "PET_NODE_RANK"):
        fixed = pods.environ.get(name, "")
        if fixed.isdecimal() and pods.count > 1:
            says = f"{name}={fixed} of {pods.name} is the same in {pods.count} pods"
            yield RENDEZVOUS.fail(says, f"leave {name} to the controller", line, fixed)
            return
    yield from _any_of_them(manifest, work, pods)
    own = {*pods.environ, *work.sets}
    if launch.program != "torchrun":
        return
    if "standalone" in options:
        says = f"torchrun --standalone of {pods.name} makes each of {work.nodes} pods a world"
        yield RENDEZVOUS.fail(says, "--nnodes and --rdzv-endpoint", line, "--standalone")
    elif not endpoint and not {"PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"} & own:
        says = (
            f"torchrun of {pods.name} does not know where {work.nodes} pods meet: it does not read"
            " MASTER_ADDR"
        )
        yield RENDEZVOUS.fail(says, "--rdzv-backend=c10d --rdzv-endpoint=…", line)
    host = endpoint.partition(":")[0]
    if work.kind == "Job" and "." in host and "$" not in host and not host[0].isdecimal():
        service = host.split(".")[1]
        if pods.template.get("subdomain") != service and not host.endswith(".local"):
            says = (
                f"{host} is no name in DNS: the pods of Job {work.name} have no subdomain {service}"
            )
            yield RENDEZVOUS.likely(says, f"subdomain: {service}, and a headless Service", line)
        elif manifest.services and service not in manifest.services:
            yield RENDEZVOUS.warn(f"The file has no Service {service}", "clusterIP: None", line)
    yield from _name_in_job_set(work, pods, address)


def _name_in_job_set(work: Workload, pods: Pods, address: str) -> Iterator[Finding]:
    """A pod of a JobSet is JOBSET-JOB-0-0.SUBDOMAIN; the subdomain is the JobSet's name unless
    spec.network says another: jobset.sigs.k8s.io, Network.
    """
    host, _, rest = address.partition(":")[0].partition(".")
    network = work.spec.get("network")
    given = network if isinstance(network, dict) else {}
    subdomain = str(given.get("subdomain") or work.name)
    if work.kind != "JobSet" or not rest or "$" in address or not host.startswith(f"{work.name}-"):
        return
    if rest.partition(".")[0] != subdomain:
        says = (
            f"{address} is no name in DNS: the pods of JobSet {work.name} are in the subdomain"
            f" {subdomain}"
        )
        yield RENDEZVOUS.fail(says, f"{host}.{subdomain}", pods.line, address)
    elif given.get("enableDNSHostnames") is False:
        says = f"{address} is no name in DNS: JobSet {work.name} has enableDNSHostnames: false"
        yield RENDEZVOUS.fail(says, "enableDNSHostnames: true", pods.line, address)


def _any_of_them(manifest: Manifest, work: Workload, pods: Pods) -> Iterator[Finding]:
    """The first address of a service that stands for all pods may be any pod's."""
    for match in _LOOKED_UP.finditer(pods.text):
        if match[1].partition(".")[0] in manifest.shared:
            says = (
                f"{pods.name} takes an address of the Service {match[1]}, which stands for"
                f" {counted(work.nodes, 'pod')}: it may be any of them, not the first"
            )
            yield RENDEZVOUS.likely(says, "the name of the first pod", pods.line, match[1])
            return


def _command(work: Workload, pods: Pods) -> Iterator[Finding]:
    """Variables in a command that no shell expands, or that nothing sets."""
    words = [
        str(word)
        for part in ("command", "args")
        if isinstance(pods.container.get(part), list)
        for word in pods.container[part]
    ][:400]
    if not words:
        return
    shell = re.fullmatch(r"(?:.*/)?(?:ba|z|da)?sh", words[0])
    entry = not pods.container.get("command")  # the image's own entry point may be a shell
    for word in words if not shell and not entry else ():
        match = re.search(r"(?<!\$)\$\{?([A-Za-z_][A-Za-z0-9_]*)", word)
        if match and "\n" not in word and " " not in word:
            says = (
                f"No shell expands ${match[1]} in the command of {pods.name}: the program gets it"
                " as it is written"
            )
            fix = f"$({match[1]}), or command: [bash, -c, …]"
            yield ENVIRONMENT.fail(says, fix, pods.line, match[0])
            return
    index = "JOB_COMPLETION_INDEX"
    if work.kind == "Job" and any(index in word for word in words) and index not in work.sets:
        says = f"{index} is not set: Job {work.name} has no completionMode: Indexed"
        yield ENVIRONMENT.fail(says, "completionMode: Indexed", work.line, index)


def _resources(pods: Pods) -> Iterator[Finding]:
    limits, requests = pods.limits, pods.requests
    for name in requests:
        extended = "/" in str(name)
        if extended and name not in limits:
            says = f"{pods.name} requests {name} without a limit: the API refuses it"
            yield GPUS.fail(says, f"limits: {{{name}: …}}", pods.line, str(name))
        elif extended and str(requests[name]) != str(limits[name]):
            says = f"{pods.name} requests {requests[name]} {name} and limits them to {limits[name]}"
            yield GPUS.fail(f"{says}: the API refuses it", "the same number", pods.line, str(name))
        elif name in ("memory", "cpu") and name in limits:
            least, most = size_of(requests[name]), size_of(limits[name])
            if least is not None and most is not None and least > most:
                says = f"{pods.name} requests more {name} ({requests[name]}) than its limit"
                yield MEMORY.fail(
                    f"{says} ({limits[name]}): the API refuses it", "a higher limit", pods.line
                )


def _mounts(pods: Pods) -> Iterator[Finding]:
    volumes = pods.template.get("volumes")
    names = {str(one.get("name")) for one in volumes or () if isinstance(one, dict)}
    mounts = pods.container.get("volumeMounts")
    for mount in mounts if isinstance(mounts, list) else ():
        name = str(mount.get("name")) if isinstance(mount, dict) else ""
        if name and name not in names:
            says = f"{pods.name} mounts the volume {name}, which the pod does not have"
            yield SCRIPT.fail(
                f"{says}: the API refuses it", f"volumes: [{{name: {name}, …}}]", pods.line
            )
            return


def _shared_memory(pods: Pods) -> Iterator[Finding]:
    fix = "emptyDir: {medium: Memory, sizeLimit: 64Gi} at /dev/shm"
    several = (pods.gpus or 0) > 1
    if not pods.gpus:
        return
    if not pods.shared_memory:
        says = (
            f"{pods.name} has the 64 MB of /dev/shm that a container gets by default, too few for"
            f" {'NCCL and ' if several else ''}loader workers"
        )
        yield (MEMORY.likely if several else MEMORY.warn)(says, fix, pods.line)
    elif pods.shared_memory == "disk":
        says = f"{SHARED} of {pods.name} is a volume on disk: medium: Memory is missing"
        yield MEMORY.warn(says, fix, pods.line)
    else:
        for volume in pods.template.get("volumes") or ():
            empty = volume.get("emptyDir") if isinstance(volume, dict) else None
            size = size_of(empty.get("sizeLimit")) if isinstance(empty, dict) else None
            memory = isinstance(empty, dict) and empty.get("medium") == "Memory"
            if memory and size is not None and size < _LEAST_SHM:
                says = f"{SHARED} of {pods.name} is limited to {size / 2**20:.0f} MB"
                yield MEMORY.warn(says, "sizeLimit: 64Gi", pods.line)


def _restarts(work: Workload) -> Iterator[Finding]:
    for pods in work.pods:
        # JobSet's own default is OnFailure; that of a pod is Always
        allowed = ("Never", "OnFailure", *(("",) if work.kind == "JobSet" else ()))
        if work.kind in ("Job", "JobSet") and pods.restart not in allowed:
            given = f"restartPolicy {pods.restart}" if pods.restart else "no restartPolicy"
            says = f"{pods.name} of {work.kind} {work.name} has {given}: the API refuses it"
            yield SCRIPT.fail(says, "restartPolicy: Never", pods.line, pods.restart)
    limit = whole(work.spec.get("backoffLimit"))
    alone = work.kind == "Job" and work.nodes > 1 and limit != 0
    launches: Sequence[str] = [pods.launch.program for pods in work.pods if pods.launch]
    elastic = any(
        pods.launch and "max-restarts" in pods.launch.options for pods in work.pods
    ) or bool(work.spec.get("elasticPolicy"))
    if alone and launches and not elastic and "podFailurePolicy" not in work.spec:
        tries = 6 if limit is None else limit  # the default of batch/v1
        says = (
            f"Job {work.name} restarts a failed pod alone (backoffLimit {tries}),"
            f" while the other {work.nodes - 1} wait for the one that is gone"
        )
        yield CODES.warn(says, "backoffLimit: 0, or JobSet, which restarts all", work.line)
    group = work.spec.get("leaderWorkerTemplate")
    if (
        isinstance(group, dict)
        and work.nodes > 1
        and group.get("restartPolicy") in ("None", "Default")
    ):
        says = f"LeaderWorkerSet {work.name} restarts a failed pod alone, while the others wait"
        yield CODES.warn(says, "restartPolicy: RecreateGroupOnPodRestart", work.line)
