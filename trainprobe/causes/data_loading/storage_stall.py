"""The file system under data or checkpoints does not answer.

A server that is down, a mount that lost its network, an overloaded volume, a FIFO that nobody
writes to: a read, a write or a plain `stat` does not come back. The process sleeps in the kernel,
often in state D where no signal reaches it, and the others wait for it.

It is recognised by a stack that ends in a file call in all looks, by what the kernel says that it
sleeps in, by state D without CPU time, and by a mount that does not answer a probe in a process of
its own. Bytes that are still written rule it out: then the storage is slow, not still.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.child_processes import others_wait, states, who
from trainprobe.causes.commands import live_pid
from trainprobe.causes.file_calls import (
    FILE_SYSTEMS,
    asleep,
    channel,
    dead_mounts,
    path_of,
    stalled,
)
from trainprobe.causes.phrases import Fixes, fix, fixes, ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("storage-stall")
BLOCKED = r"task [\w./:-]{1,60} blocked for more than \d+ seconds"


def _from_log(scene: Scene) -> Weighings:
    """What logs say of a file system: a lost one settles a crash, and explains a wait."""
    found = tuple(weigh_statement(scene, WORDING))
    yield from found
    if found and scene.group.mode == "crash":
        yield from first_to_fail(scene)
    if (
        blocked := statement(scene, BLOCKED)
    ) is not None:  # memory pressure and sick disks do so as well
        says = f"The kernel says: {short(blocked.text, 120)}"
        yield weighing(10 if found else 6, "kernel-log", says, blocked.fact)


def _weigh(scene: Scene) -> Weighings:
    yield from _from_log(scene)
    standing, sleeping = stalled(scene), asleep(scene)
    if not (standing or sleeping):  # a mount that is dead for somebody else says nothing
        return
    for mount in dead_mounts(scene)[:1]:
        says = (
            f"{mount.path} ({mount.fstype} from {mount.device or 'a server'}) does not answer a"
            " probe"
        )
        yield weighing(13, "storage", says, mount)
    if standing:
        sure = standing[0].moved is False and (standing[0].op in FILE_SYSTEMS or bool(sleeping))
        says = (
            f"{who(standing[0])} stands in a file call ({standing[0].op}) at"
            f" {standing[0].where or 'one place'}"
        )
        yield weighing(
            13 if sure else 6, "suspects-stack", f"{says} in {standing[0].looks} looks", *standing
        )
    for state in sleeping[:1]:
        known = channel(state)
        points = 6
        if known in FILE_SYSTEMS - {"disk"} or (state.state == "D" and (known or not state.wchan)):
            points = 13
        what = (
            f" in {known} ({state.wchan})" if known else f" in {state.wchan}" if state.wchan else ""
        )
        says = f"Pid {state.pid} sleeps{what}, state {state.state}, and uses no CPU"
        yield weighing(points, "process-state-and-locks", says, state)
    yield from others_wait(scene)
    wrote = [state for state in states(scene) if state.wrote_bytes]
    if wrote:
        says = f"Pid {wrote[0].pid} still wrote {wrote[0].wrote_bytes} bytes between the looks"
        yield weighing(-13, "storage", says, *wrote)
    if standing and any(
        state.pid == standing[0].pid and state.state == "R" for state in states(scene)
    ):
        yield weighing(-13, "process-state-and-locks", "It computes meanwhile (state R)", *standing)


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(
        dict.fromkeys(
            [*(thread.pid for thread in stalled(scene)), *(state.pid for state in asleep(scene))]
        )
    )


def _fifo(scene: Scene) -> bool:
    return any(channel(state) == "fifo" for state in asleep(scene)) or any(
        thread.op == "fifo" for thread in stalled(scene)
    )


def _summary(scene: Scene) -> str:
    standing = stalled(scene)
    path = path_of(scene)
    found = statement(scene, WORDING) or statement(scene, BLOCKED)
    if found is not None and not (standing or asleep(scene)):
        return (
            f"{ranks_say(scene.ranks)} {'meets' if len(scene.ranks) < 2 else 'meet'} a file system"
            f" that does not answer: {short(found.text, 140)}"
        )
    subject = who(standing[0]) if standing else ranks_say(scene.ranks)
    where = f" at {standing[0].where}" if standing and standing[0].where else ""
    if _fifo(scene):
        return (
            f"{subject} waits{where} to open {f'{path}, ' if path else ''}a FIFO whose other end"
            " nobody has open"
        )
    return f"{subject} waits for {path or 'its file system'}{where}, which does not answer"


FIXES = """
See whether the file system answers
    timeout 5 stat {path} || echo no answer
    cat /proc/{pid}/wchan; ls -l /proc/{pid}/fd
[admin] Bring the server or mount back
    findmnt -T {path}
    nfsstat -m; dmesg | tail
Keep training apart from slow storage
    copy the data to a local disk first; save checkpoints with
        torch.distributed.checkpoint.async_save
[disruptive] Or end the job: it does not come back alone
    kill {live_pid}
"""


def _fixes(scene: Scene) -> Fixes:
    pid, path = next((str(pid) for pid in _pids(scene)), "<PID>"), path_of(scene) or "<PATH>"
    if _fifo(scene):
        see = fix("See what that path is", f"ls -l {path}   (p at the start of the line: a FIFO)")
        return (
            see,
            fix(
                "Write to a plain file, or start whoever has the other end first",
                "os.O_NONBLOCK gives an error instead of a wait",
            ),
        )
    return fixes(FIXES, path=path, pid=pid, live_pid=live_pid(scene))


CAUSE = Cause(
    id="storage-stall",
    title="The file system does not answer",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="timeout 5 stat on the path, and cat /proc/<PID>/wchan",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck", "gil-held", "import-hang", "user-exception"),
    wording=WORDING,
    ready=ReadySigns(
        says=("has storage that does not answer", "have storage that does not answer"),
        checks=("fs.hang", "fs.smallfile", "fs.seqread", "fs.ckpt"),
    ),
)
