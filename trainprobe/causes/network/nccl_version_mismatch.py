"""NCCL is too old for this machine, or differs between the nodes, or is not the one that torch was built with.

Two environments on two nodes, a libnccl.so.2 of the system before torch's own in LD_LIBRARY_PATH, or a NCCL that does not know this topology: it fails in
its own checks as it sets up.

It is recognised by NCCL's words about versions, by different version lines in one job, by a missing nccl symbol, and (weaker) by an internal error while
the topology is read. NCCL 2.18 reports network errors as internal ones; a line that names a failed connection says it better.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import captured, failed_of_something_else, last_words, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, listed, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

SURE = r"Mismatched NCCL version|NCCL version mismatch|NCCL library is (?:too old|not backwards)|too old version of NCCL|NCCL version is too old|undefined symbol: p?nccl[A-Z]"
TOPOLOGY = r"does not loop back to start|Attribute \w{1,40} of node \w{1,20} not found|Could not find rev link|XML (?:Topology|Graph) has wrong version|too many Topo links"
INTERNAL = r"internal error - please report this issue to the NCCL developers|ncclInternalError|NCCL error in: [^\n]{0,400}, internal error"
WORDING = f"{SURE}|{TOPOLOGY}|{INTERNAL}"
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


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    sure = told(scene, SURE, "nccl-version-mismatch")
    versions, elsewhere = _versions(scene), failed_of_something_else(scene)
    if sure is not None:
        yield from weigh_told(scene, sure)
    elif len(versions) > 1 and not elsewhere:
        yield weighing(13 if lines(scene, "nccl-internal", "nccl-topology", "nccl-system-error", "connection-closed") else 6, "environment-and-limits",
                       f"One job runs with NCCL {listed(versions)}", *lines(scene, "nccl-version")[:4])  # fmt: skip
    topology = told(scene, TOPOLOGY, "nccl-topology")
    if topology is not None:
        yield from weigh_told(scene, topology)
        return
    internal = told(scene, INTERNAL, "nccl-internal")
    if sure is None and internal is not None and not elsewhere:
        points = 3 if lines(scene, *_BETTER) else 13
        yield weighing(points, "suspects-log", f"NCCL fails in its own checks: {short(internal.text)}", internal.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    sure, versions = told(scene, SURE, "nccl-version-mismatch"), _versions(scene)
    if sure is not None:
        return sentence(f"NCCL is not the version that is needed: {short(sure.text, 160)}")
    if len(versions) > 1:
        return sentence(f"The ranks of one job use different versions of NCCL: {listed(versions)}")
    heard = told(scene, f"{TOPOLOGY}|{INTERNAL}", "nccl-topology", "nccl-internal")
    which = f" {versions[0]}" if versions else ""
    return sentence(
        f"NCCL{which} fails in its own checks as it sets up, as a version that is too old for this machine does: {short(heard.text, 120) if heard else ''}"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    last = last_words(scene)
    where = "python -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'   (on each node)"
    symbol = bool(last) and "undefined symbol" in last[0].message
    return (
        fix(
            scene,
            "See which NCCL each node loads",
            where,
            "ldd $(python -c 'import torch,os; print(os.path.dirname(torch.__file__))')/lib/libtorch_cuda.so | grep nccl",
        ),
        fix(
            scene,
            "Use one NCCL everywhere, torch's own",
            "unset LD_LIBRARY_PATH   (or take the folder with another libnccl.so.2 out of it)"
            if symbol
            else "pip install --upgrade nvidia-nccl-cu12   (the same on all nodes)",
            "pip list | grep -i nccl   (one package only)",
        ),
        fix(scene, "Have NCCL say what fails", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV torchrun …"),
    )


CAUSE = readied(
    Cause(
        id="nccl-version-mismatch",
        title="NCCL is too old or differs between the nodes",
        means="NCCL is too old for this machine or for torch, or differs between the nodes.",
        telling="NCCL's words about versions, different version lines, a missing nccl symbol, or an internal error while the topology is read.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="torch.cuda.nccl.version() on every node, and the library that libtorch_cuda.so loads",
        accounts_for=("user-exception", "abi-mismatch", "import-failure", "native-crash"),
        wording=WORDING,
    ),
    Signs(says=("has another version of NCCL", "have another version of NCCL"), checks=("py.nccl",), values=("version.nccl", "nccl.version")),
)
