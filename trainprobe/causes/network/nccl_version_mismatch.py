"""NCCL is too old for this machine, or differs between the nodes, or is not the one that torch was
built with.

Two environments on two nodes, a libnccl.so.2 of the system before torch's own in LD_LIBRARY_PATH,
or a NCCL that does not know this topology: it fails in its own checks as it sets up.

It is recognised by NCCL's words about versions, by different version lines in one job or different
versions in the memory of its ranks, by a missing nccl symbol, and (weaker) by an internal error
while the topology is read. NCCL 2.18 reports network errors as internal ones; a line that names a
failed connection says it better.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.rank_differences import NCCL, named_differences, weigh_differences
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    captured,
    failed_of_something_else,
    final_exceptions,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

SURE = message("nccl-version-mismatch.sure")
TOPOLOGY = message("nccl-version-mismatch.topology")
INTERNAL = message("nccl-version-mismatch.internal")
WORDING = f"{SURE}|{TOPOLOGY}|{INTERNAL}"
_FAILED = ("nccl-internal", "nccl-topology", "nccl-system-error", "connection-closed")
# What says better why NCCL gave up.
_BETTER = (
    "peer-refused",
    "peer-unanswered",
    "no-route",
    "interface-missing",
    "ib-error",
    "ib-setup-failed",
    "memlock",
    "nccl-shm",
    "nvls",
    "nccl-proxy-failed",
    "nccl-setting-faulty",
)


def _versions(scene: Scene) -> tuple[str, ...]:
    return captured(lines(scene, "nccl-version"), "version")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_differences(scene, named_differences(scene, NCCL))
    sure = startup_failure(scene, SURE, "nccl-version-mismatch")
    versions, elsewhere = _versions(scene), failed_of_something_else(scene)
    if sure is not None:
        yield from weigh_startup_failure(scene, sure)
    elif len(versions) > 1 and not elsewhere:
        says = f"One job runs with NCCL {and_list(versions)}"
        points = 13 if lines(scene, *_FAILED) else 6
        yield weighing(points, "environment-and-limits", says, *lines(scene, "nccl-version")[:4])
    topology = startup_failure(scene, TOPOLOGY, "nccl-topology")
    if topology is not None:
        yield from weigh_startup_failure(scene, topology)
        return
    internal = startup_failure(scene, INTERNAL, "nccl-internal")
    if sure is None and internal is not None and not elsewhere:
        points = 3 if lines(scene, *_BETTER) else 13
        yield quote(points, "NCCL fails in its own checks", internal)


def _summary(scene: Scene) -> str:
    if unlike := named_differences(scene, NCCL):
        return unlike[0].says
    sure, versions = startup_failure(scene, SURE, "nccl-version-mismatch"), _versions(scene)
    if sure is not None:
        return f"NCCL is not the version that is needed: {short(sure.text, 160)}"
    if len(versions) > 1:
        return f"The ranks of one job use different versions of NCCL: {and_list(versions)}"
    found = startup_failure(scene, f"{TOPOLOGY}|{INTERNAL}", "nccl-topology", "nccl-internal")
    which = f" {versions[0]}" if versions else ""
    return (
        f"NCCL{which} fails in its own checks as it sets up, as a version that is too old for this"
        f" machine does: {short(found.text, 120) if found else ''}"
    )


FIXES = """
See which NCCL each node loads
    python -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'   (on each node)
    ldd $(python -c 'import torch,os; print(os.path.dirname(torch.__file__))')/lib/libtorch_cuda.so
        | grep nccl
Use one NCCL everywhere, torch's own
    {own}
    pip list | grep -i nccl   (one package only)
Have NCCL say what fails
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV torchrun …
"""


def _fixes(scene: Scene) -> Fixes:
    own = "pip install --upgrade nvidia-nccl-cu12   (the same on all nodes)"
    if any("undefined symbol" in exception.message for exception in final_exceptions(scene)[:1]):
        own = "unset LD_LIBRARY_PATH   (or take the folder with another libnccl.so.2 out of it)"
    return fixes(FIXES, own=own)


CAUSE = Cause(
    id="nccl-version-mismatch",
    title="NCCL is too old or differs between the nodes",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "torch.cuda.nccl.version() on every node, and the library that libtorch_cuda.so loads"
    ),
    accounts_for=("user-exception", "abi-mismatch", "import-failure", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("has another version of NCCL", "have another version of NCCL"),
        checks=("py.nccl",),
        values=("version.nccl", "nccl.version"),
    ),
)
