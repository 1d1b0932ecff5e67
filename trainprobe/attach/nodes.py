"""One look on every node of a job, side by side: each node looks at its own part and sends its evidence home as lines.

The way there is the site's own: `srun --overlap` inside the job's allocation, or OpenSSH. A node that does not answer is evidence, too.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.attach.answers import Answer, at_host, read_answer
from trainprobe.attach.visit import CELL
from trainprobe.errors import UsageError
from trainprobe.model.evidence import Ended
from trainprobe.model.subjects import Subject
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.run import Ran, run

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.model.evidence import LookOutcome
    from trainprobe.model.progress import Progress

KIND = "node.look"
AT_ONCE = 64
MOST_SAID = 4
AGAIN_S = 0.25
ANSWER_CAP_BYTES = 16 * 2**20  # four ranks send some 0.1 MB
START_S = 12.0  # for the way to a node, and a Python on a cold file system there
BEHIND, LEAST_BEHIND_S = 2.0, 3.0  # once most have answered, the rest get so many times what the slowest of those took, and at least so long
SKEW_S = 1.0  # clocks that are further apart are set right by the difference


@dataclass(frozen=True)
class Node:
    """A node and the command that runs our look on it."""

    name: str
    argv: tuple[str, ...]


def ours(*words: str) -> tuple[str, ...]:
    """The command that is this very tool with this very Python, wherever its package lies."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    start = f"import sys; sys.path.insert(0, {package!r}); from trainprobe.cli import main; main()"
    return (sys.executable, "-c", start, *words)


def by_srun(job: str, nodes: Sequence[str], words: Sequence[str]) -> list[Node]:
    """A step of its own on each node, so that one that does not answer holds up no other."""
    shared = ("--overlap", f"--jobid={job}", "--nodes=1", "--ntasks=1", "--input=none", "--kill-on-bad-exit=0", "--mpi=none", "--chdir=/")
    return [Node(name, ("srun", *shared, f"--nodelist={name}", *ours(*words))) for name in nodes]


def by_ssh(nodes: Sequence[str], words: Sequence[str]) -> list[Node]:
    """By the user's own OpenSSH, which asks for nothing; this very host needs none. TRAINPROBE_SSH is another command for it, such as `ssh -F config`.

    Raises UsageError where that is no command.
    """
    try:
        ssh = tuple(shlex.split(os.environ.get("TRAINPROBE_SSH") or "ssh"))
    except ValueError as error:
        raise UsageError(f"TRAINPROBE_SSH is no command: {error}.", "Such as: ssh -F /path/to/config.") from error
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={START_S:.0f}", "-T")
    return [Node(name, ours(*words) if is_here(name) else (*ssh, *options, "--", name, shlex.join(ours(*words)))) for name in nodes]


def is_here(name: str) -> bool:
    """Is this the name of this host, with or without its domain?"""
    own = os.uname().nodename
    return name in (own, "localhost") or ("." not in (name if "." in own else own) and name.partition(".")[0] == own.partition(".")[0])


def look_on_nodes(nodes: Sequence[Node], case: Case, look_s: float, progress: Progress) -> None:
    """Run the look on all nodes at once and put what they saw into `case`; a node has `look_s` and the time for the way.

    Where at least half have answered, the others are waited for in proportion to that, and not to the whole deadline. For each node there is a record
    `node.look`: ok with the time that it took and how far its clock is from ours (seconds), or why it gave no answer.
    Raises Interrupted after Ctrl-C, when what was learnt until then is in the case and nobody is asked any more.
    """
    progress.note(f"Looking on {len(nodes)} nodes.")
    began = time.monotonic()
    turns = -(-len(nodes) // AT_ONCE)  # who is asked later may take as long
    until = began + turns * (look_s + START_S)
    spoke = 0
    with Interruption() as interruption, ThreadPoolExecutor(max_workers=min(AT_ONCE, max(1, len(nodes)))) as pool:
        shorter = Shorter(until)
        waiting = {pool.submit(_asked, node, shorter): node for node in nodes}
        while waiting:
            done, _ = wait(waiting, timeout=AGAIN_S, return_when=FIRST_COMPLETED)
            shorter.interrupted = interruption.asked
            for one in done:
                spoke += _kept(case, waiting.pop(one), one.result())
            if done and 2 * spoke >= len(nodes) and waiting:  # who cannot be reached says so at once: that is no measure for the others
                took_s = time.monotonic() - began
                shorter.until = min(until, time.monotonic() + max(LEAST_BEHIND_S, (BEHIND - 1) * took_s))
            if done and not interruption.asked:
                names = ", ".join(node.name for node in list(waiting.values())[:3])
                progress.note(f"{spoke} of {len(nodes)} nodes have answered" + (f"; waiting for {names}" if names else "") + ".")
    if interruption.asked:
        case.add("interrupted", source="signal", data={"phase": "attach", "cell": CELL})
        raise Interrupted


def nobody_answered(case: Case) -> None:
    """Raise UsageError with what the nodes said where none of them has seen a job: there is nothing to report on."""
    found = case.evidence
    if any(record.kind == "job" for record in found):
        return
    says = list(dict.fromkeys(record.reason.rstrip(".") for record in found if record.kind == KIND and record.reason))
    more = f"; and {len(says) - MOST_SAID} more" if len(says) > MOST_SAID else ""
    raise UsageError(f"No node has shown a training job: {'; '.join(says[:MOST_SAID])}{more}.", "Look on one of them: ssh NODE trainprobe attach.")


class Shorter:
    """A deadline of all nodes (of time.monotonic) that may come nearer while they are waited for, or be over at once."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.interrupted = False

    def stopped(self) -> bool:
        return self.interrupted

    def passed(self) -> bool:
        return self.interrupted or time.monotonic() > self.until


@dataclass(frozen=True)
class Call:
    """What came of asking a node: None where nobody asked it before the time was up. `began` and `ended` are Unix times in seconds."""

    ran: Ran | None
    began: float
    ended: float
    interrupted: bool = False


def _asked(node: Node, deadline: Shorter) -> Call:
    began = time.time()
    left_s = deadline.until - time.monotonic()
    if left_s <= 0 or deadline.stopped():
        return Call(None, began, began, deadline.stopped())
    try:
        ran = run(node.argv, timeout_s=left_s, output_cap_bytes=ANSWER_CAP_BYTES, kill_s=0.5, given_up=deadline.passed)
    except OSError as error:  # no room for the answer, or no descriptor left
        ran = Ran(node.argv, Ended("not_started", reason=f"the answer has no place here: {error.strerror or error}"), b"", b"", cut=False)
    return Call(ran, began, time.time(), ran.ended.how == "timed_out" and deadline.stopped())


def _kept(case: Case, node: Node, call: Call) -> bool:
    """Put what came of it into the case. Return whether the node has spoken."""
    answer = read_answer(call.ran.stdout) if call.ran is not None else Answer()
    skew = (answer.now or call.ended) - call.ended
    skew = skew if abs(skew) > SKEW_S else 0.0
    outcome, says = _outcome(node, call, answer)
    data = {"clock_skew_s": round(skew, 3), "host": answer.host} if answer.begun else {}
    if answer.none:
        data["answered"] = True
    if call.ran is None or call.interrupted:
        data["asked"] = False
    source, took_s = os.path.basename(node.argv[0]), call.ended - call.began
    case.add(KIND, subject=Subject("host", host=node.name), cell=CELL, source=source, began=call.began, took_s=took_s, outcome=outcome, reason=says, data=data)
    if outcome not in ("ok", "partial"):
        return answer.whole
    for record in (at_host(one, node.name, skew) for one in answer.records):
        case.add(
            record.kind,
            subject=record.subject,
            cell=record.cell,
            source=record.source,
            began=record.began,
            took_s=record.took_s,
            outcome=record.outcome,
            reason=record.reason,
            data=record.data,
        )
    return True


def _outcome(node: Node, call: Call, answer: Answer) -> tuple[LookOutcome, str]:
    """What the answer is worth, and the sentence that says what is amiss with it. A node that froze after its first words has not answered."""
    ran = call.ran
    if ran is None:
        return "unavailable", f"{node.name} was not asked: {'the look was interrupted' if call.interrupted else 'the time was over'}"
    if call.interrupted:
        return "unavailable", f"{node.name} had not answered when the look was interrupted"
    if answer.reason:
        return "unavailable", answer.reason
    saw = any(record.kind == "job" for record in answer.records)
    if saw and answer.whole and not answer.flood and not ran.cut:
        return "ok", ""
    if saw:
        much = "more than a look has to say" if answer.flood or ran.cut else "not its end"
        return "partial", f"{node.name} sent {len(answer.records)} records and {much}"
    if ran.ended.how == "timed_out":
        return "timed_out", f"{node.name} did not answer within {call.ended - call.began:.0f} s"
    last = ran.stderr[-4000:].decode("utf-8", "replace").strip().splitlines()[-1:]
    why = last or [ran.ended.reason or f"it ended with {_ending(ran)} and {'told of no job' if answer.begun else 'said nothing'}"]
    return "unavailable", f"{node.name} cannot be looked at: {why[0][:300]}"


def _ending(ran: Ran) -> str:
    return f"code {ran.ended.code}" if ran.ended.code is not None else f"signal {ran.ended.signal}"
