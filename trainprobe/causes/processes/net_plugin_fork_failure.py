"""Starting a child fails because the RDMA or EFA layer has pinned huge pages that cannot be copied.

With aws-ofi-nccl on EFA, NCCL's buffers lie in huge pages. A fork has to reserve as many again: the
DataLoader's workers or a subprocess cannot be started,
`OSError: [Errno 12] Cannot allocate memory`, while memory is free. Where memory is registered that
a fork must not copy, libfabric aborts the process at its first fork.

It is recognised by errno 12 out of a fork on a machine with EFA, and by libfabric's own words.
Without a sign of EFA or RDMA, short memory or a limit of address space explains it better.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.causes.startup_failures import final_exceptions, lines
from trainprobe.causes.statements import quote, text_of
from trainprobe.facts import Given, RankException
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message

WORDING = message("net-plugin-fork-failure")
_FORKS = re.compile(r"popen_fork\.py|subprocess\.py|popen_forkserver\.py|os\.py")
_CALLS = re.compile(r"os\.fork\(\)|fork_exec|_launch|_fork\b")
_EFA = re.compile(
    r"\befa\b|libfabric|aws-ofi-nccl|AWS Libfabric|NET/OFI|FI_EFA_|FI_PROVIDER=efa", re.IGNORECASE
)


def _forked(scene: Scene) -> RankException | None:
    """The exception of a fork that had no memory."""
    for exception in final_exceptions(scene):
        refused = "Errno 12" in text_of(exception) or "Cannot allocate memory" in exception.message
        last = exception.frames[-2:]
        forks = any(_FORKS.search(frame.file) or _CALLS.search(frame.text) for frame in last)
        if refused and (forks or not last):
            return exception
    return None


def _efa(scene: Scene) -> Fact | None:
    """A line or a setting of EFA or its plugin."""
    for event in lines(scene, "efa-in-use", "ofi-error"):
        return event
    for given in scene.facts.of(Given):
        if given.name.startswith("env.FI_") or _EFA.search(f"{given.name} {given.value}"):
            return given
    return None


def _weigh(scene: Scene) -> Weighings:
    refused = next(iter(lines(scene, "fork-refused")), None)
    if refused is not None and scene.origin is None:
        says = "The network layer aborted the process at a fork"
        yield quote(26, says, refused)
        return
    failed, efa = _forked(scene), _efa(scene)
    printed = next(iter(lines(scene, "fork-no-memory")), None)
    if failed is None and (printed is None or efa is None or scene.origin is not None):
        return
    shown = failed or printed
    if efa is None:
        says = "A fork had no memory; nothing shows EFA or RDMA"
        yield weighing(3, "suspects-log", says, shown)
        return
    text = failed.message if failed else printed.line if printed else ""
    yield weighing(26, "suspects-log", f"A fork had no memory: {short(text)}", shown)
    yield weighing(10, "network", "EFA's plugin is in use, which pins huge pages", efa)


def _summary(scene: Scene) -> str:
    if lines(scene, "fork-refused"):
        return (
            "The EFA layer aborted the process when it started a child: memory is registered that a"
            " fork must not copy"
        )
    failed = _forked(scene)
    frame = user_frame(failed.frames) if failed is not None else None
    return (
        f"A child cannot be started{f' at {frame.where}' if frame else ''}: the huge pages that the"
        " EFA layer pinned cannot be reserved a second time"
    )


CAUSE = Cause(
    id="net-plugin-fork-failure",
    title="A fork fails because the network layer pinned huge pages",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Make registered memory safe for a fork
            export FI_EFA_FORK_SAFE=1 RDMAV_FORK_SAFE=1   (on every rank, before the job starts)
        Keep EFA off huge pages
            export FI_EFA_USE_HUGE_PAGE=0   (on every rank, before the job starts)
        Start workers before the communicator, or without a fork
            DataLoader(..., multiprocessing_context='forkserver', persistent_workers=True)
        [admin] Use a newer plugin and libfabric
            fi_info --version; upgrade aws-ofi-nccl and the EFA installer (1.22 or later)
        See the huge pages
            grep -i huge /proc/meminfo
    """),
    ranks=nobody,
    would_settle=(
        "free -g beside grep -i huge /proc/meminfo when it happens, and one run with"
        " FI_EFA_USE_HUGE_PAGE=0"
    ),
    accounts_for=("user-exception", "address-space-limit", "process-limit", "host-oom-killed"),
)
