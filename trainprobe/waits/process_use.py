"""What one process of a live job used and moved between the looks, and what of that is work: by
/proc alone.
"""

from __future__ import annotations

from typing import Literal

from trainprobe.facts import MainThread, ProcessState
from trainprobe.stacks.rules import SERVANT
from trainprobe.stacks.stillness import SWITCHES_PER_LOOK
from trainprobe.stacks.wait_channels import sleeps_in

BUSY_SHARE = 0.3
WROTE_BYTES = 64 * 1024
READ_BYTES = 4096
"""Less than a page is no work: a poll of a lock's page or of a counter reads some bytes each
time.
"""
GREW_BYTES = 1 << 20
# Leaves in which a thread of Python's own waits for something to come.
AWAITS = frozenset(
    {
        "sleep",
        "lock",
        "net-io",
        "child-wait",
        "dataloader",
        "import-lock",
        "file-io",
        "teardown",
        "worker-idle",
    }
)


def sleep_of(process: ProcessState) -> tuple[str, str]:
    """The class of the kernel call in which it sleeps, and its name; both empty while it runs."""
    found = None if process.state == "R" else sleeps_in(process.wchan, process.syscall)
    return found or ("", "")


def by_proc(
    process: ProcessState, main: MainThread | None, where: str, *, workers_answer: bool | None
) -> tuple[Literal["stopped", "ended", "works", "blocked"], str] | None:
    """What /proc alone settles. `workers_answer` says whether one of its loader workers has
    answered between the looks; None where it has none.
    """
    if process.state in ("T", "t"):
        return "stopped", "is stopped"
    if process.frozen and process.state not in ("Z", "X"):
        return "stopped", "is frozen by its cgroup"
    if process.state in ("Z", "X"):
        return "ended", "has ended"
    if _moves_bytes(process, main, workers_answer=workers_answer):
        return "works", f"moves data{where} ({_bytes(process)})"
    return ("blocked", f"is blocked in the kernel{where}") if process.state == "D" else None


def busy(process: ProcessState) -> bool:
    """Did its main thread compute between the looks, or does it in the only one?"""
    if process.cpu_s is not None and process.looked_s:
        if process.state != "R" or not process.cpu_s:
            return process.cpu_s >= BUSY_SHARE * process.looked_s
        # Who wakes for a moment only to wait again may be met in it.
        wanted_s = process.cpu_s + (process.queued_s or 0.0)
        return process.queued_s is None or wanted_s >= BUSY_SHARE * process.looked_s
    return process.state == "R" and process.cpu_moved is not False


def gets_on(process: ProcessState) -> bool:
    """Does what it holds grow, or does it read on?"""
    return (process.grew_bytes or 0) >= GREW_BYTES or (process.read_bytes or 0) >= WROTE_BYTES


def uses_its_share(process: ProcessState) -> bool:
    """Did its main thread have as much of a CPU between the looks as work takes?"""
    return (
        process.cpu_s is not None
        and bool(process.looked_s)
        and process.cpu_s >= BUSY_SHARE * (process.looked_s or 0.0)
    )


def never_sleeps(process: ProcessState) -> bool:
    """Has it given up the processor for nothing but our looks? On a crowded machine that is
    work, however little of it it gets.
    """
    return (
        process.state == "R"
        and process.looks > 1
        and process.switches is not None
        and process.switches <= SWITCHES_PER_LOOK * (process.looks - 1)
    )


def _moves_bytes(
    process: ProcessState, main: MainThread | None, *, workers_answer: bool | None
) -> bool:
    # A worker that answers writes to its queue, and who hands out work to one does too, by a thread
    # of its own. While no worker answers, some other thread has written, however much: a logger, a
    # profiler, the threads of a notebook's kernel.
    loads = main is not None and main.leaf == "dataloader"
    answers = main is not None and main.op == SERVANT
    if (
        process.wrote_bytes
        and not answers
        and (workers_answer or not another_writes(process, main))
        and not (loads and workers_answer is False)
        and not _others_write(process, main)
    ):
        enough = 1 if loads or process.role == "loader-worker" else WROTE_BYTES
        if process.wrote_bytes >= enough:
            return True
    reads = process.read_moved if process.read_bytes is None else process.read_bytes >= READ_BYTES
    return bool(reads) and main is not None and main.leaf == "file-io"


def _others_write(process: ProcessState, main: MainThread | None) -> bool:
    """Did its main thread sleep in a known wait through all looks? Then other threads wrote the
    bytes.
    """
    return (
        main is not None
        and main.leaf in AWAITS - {"file-io"}
        and main.moved is False
        and process.stillness is not None
        and not process.stillness.wakes
    )


def another_writes(process: ProcessState | None, main: MainThread | None) -> bool:
    """Did threads beside the main one of a rank write all that was written, so much that it would
    be work? A thread of telemetry does so in a rank that is stuck, too.
    """
    return (
        process is not None
        and process.role == "rank"
        and (main is None or main.leaf != "dataloader")
        and process.main_wrote_bytes is not None
        and process.main_wrote_bytes < WROTE_BYTES <= (process.wrote_bytes or 0)
        and not _others_write(process, main)
    )


def _bytes(process: ProcessState) -> str:
    wrote = process.wrote_bytes
    if not wrote:
        return "it reads"
    return (
        f"{wrote / 2**20:.1f} MiB written between the looks"
        if wrote >= WROTE_BYTES
        else f"{wrote} bytes written between the looks"
    )
