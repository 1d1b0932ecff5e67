"""Many nodes asked at once, each by a command of its own; what they send is put into the case, and so is it that one sent nothing."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.model.evidence import Ended
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import Accept, Answer, at_host, is_whole, read_answer
from trainprobe.nodes.tree import MANY, asked_by_tree
from trainprobe.nodes.way import Node
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.run import Ran, run

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.model.evidence import LookOutcome
    from trainprobe.model.progress import Progress

KIND = "node.look"
AT_ONCE = 64
AGAIN_S = 0.25
ANSWER_CAP_BYTES = 16 * 2**20  # four ranks send some 0.1 MB
START_S = 12.0  # for the way to a node, and a Python on a cold file system there
BEHIND, LEAST_BEHIND_S = 2.0, 3.0  # once most have answered, the rest get so many times what the slowest of those took, and at least so long
SKEW_S = 1.0  # clocks that are further apart are set right by the difference
# What srun says behind the reason for which it ends.
_AFTERWARDS = re.compile(
    r"Job step aborted|[Ff]orcing job termination|got SIG[A-Z]+|Force Terminated|CANCELLED AT|STEPS? \S+ ON |: tasks? \S+: Exited with exit code"
)


@dataclass(frozen=True)
class Call:
    """What came of asking a node: `ran` is None where nobody asked it before the time was up. `began` and `ended` are Unix times in seconds."""

    ran: Ran | None
    began: float
    ended: float
    interrupted: bool = False


def ask(  # noqa: PLR0913 - one parameter per way to bound it
    nodes: Sequence[Node],
    case: Case,
    look_s: float,
    progress: Progress,
    accept: Accept,
    phase: str,
    *,
    patient: bool = False,
    most_s: float | None = None,
    interruption: Interruption | None = None,
    at_once: int | None = None,
) -> tuple[str, ...]:
    """Ask all nodes at once, put what they send into `case`, and return the names of those that told something; a node has `look_s` and the time for the way.

    `at_once` nodes are asked at the same time, 64 where it is None. `most_s` bounds the whole instead: then a node for which less than `look_s` would
    be left, since others took their time before it, is not asked, and the record says so. Where at least half have answered, the others are waited for
    in proportion to that, and not to the whole deadline, unless we are `patient`. For each node there is a record `node.look`: ok with the time that it took and how far its clock is from ours (seconds), or
    why it gave no answer. What a node had sent when its time was up is kept, and the record says `partial`.
    Raises Interrupted after Ctrl-C, when what was learnt until then is in the case and nobody is asked any more; `phase` says in it what was going on.
    """
    progress.note(f"Looking on {len(nodes)} nodes.")
    told: list[str] = []

    def heard(node: Node, call: Call) -> bool:
        spoke, tells = _kept(case, node, call, accept)
        told.extend([node.name] if tells else [])
        return spoke

    with Interruption() if interruption is None else contextlib.nullcontext(interruption) as asked:
        call_all(nodes, look_s, heard, asked, progress, patient=patient, most_s=most_s, at_once=at_once)
    if asked.asked:
        case.add("interrupted", source="signal", data={"phase": phase, "cell": accept.cell})
        raise Interrupted
    return tuple(told)


def call_all(
    nodes: Sequence[Node],
    look_s: float,
    heard: Callable[[Node, Call], bool],
    interruption: Interruption,
    progress: Progress,
    *,
    patient: bool = False,
    most_s: float | None = None,
    at_once: int | None = None,
) -> None:
    """Run the commands of all nodes and hand each to `heard`, in this thread, when it is over; that says whether the node has spoken."""
    width = max(1, at_once or AT_ONCE)
    began = time.monotonic()
    turns = -(-len(nodes) // width)  # who is asked later may take as long
    until = began + (turns * (look_s + START_S) if most_s is None else most_s)
    spoke = 0
    by_tree = asked_by_tree(nodes, look_s + START_S if most_s is None else most_s, lambda: interruption.asked) if len(nodes) > MANY else {}
    if by_tree:
        now = time.time()
        start = now - (time.monotonic() - began)
        for node in nodes:
            if node.name in by_tree:
                spoke += heard(node, Call(by_tree[node.name], start, now, interruption.asked and by_tree[node.name].ended.how == "timed_out"))
        nodes = [node for node in nodes if node.name not in by_tree]
        if most_s is None:  # those that the tree did not reach have as long again
            until = time.monotonic() + -(-len(nodes) // width) * (look_s + START_S)
        progress.note(f"{spoke} nodes have answered; {len(nodes)} are left to be asked directly.")
    with ThreadPoolExecutor(max_workers=min(width, max(1, len(nodes)))) as pool:
        shorter = Shorter(until)
        least_s = look_s if most_s is not None and len(nodes) > width else 0.0
        waiting = {pool.submit(_asked, node, shorter, least_s): node for node in nodes}
        while waiting:
            done, _ = wait(waiting, timeout=AGAIN_S, return_when=FIRST_COMPLETED)
            shorter.interrupted = interruption.asked
            for one in done:
                spoke += heard(waiting.pop(one), one.result())
            if done and 2 * spoke >= len(nodes) and waiting and not patient:  # who cannot be reached says so at once: that is no measure for the others
                took_s = time.monotonic() - began
                shorter.until = min(until, time.monotonic() + max(LEAST_BEHIND_S, (BEHIND - 1) * took_s))
            if done and not interruption.asked:
                names = ", ".join(node.name for node in list(waiting.values())[:3])
                progress.note(f"{spoke} of {len(nodes)} nodes have answered" + (f"; waiting for {names}" if names else "") + ".")


class Shorter:
    """A deadline of all nodes (of time.monotonic) that may come nearer while they are waited for, or be over at once."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.interrupted = False

    def stopped(self) -> bool:
        return self.interrupted

    def passed(self) -> bool:
        return self.interrupted or time.monotonic() > self.until


def _asked(node: Node, deadline: Shorter, least_s: float = 0.0) -> Call:
    began = time.time()
    left_s = deadline.until - time.monotonic()
    if left_s <= 0 or left_s < least_s or deadline.stopped():
        return Call(None, began, began, deadline.stopped())
    try:
        ran = run(
            node.argv,
            timeout_s=left_s,
            env=node.env,
            output_cap_bytes=ANSWER_CAP_BYTES,
            input=node.said,
            kill_s=0.5,
            given_up=deadline.passed,
            hold_input=node.held,
            enough=is_whole,  # srun may take many seconds to end where the way back from a node is blocked
        )
    except OSError as error:  # no room for the answer, or no descriptor left
        ran = Ran(node.argv, Ended("not_started", reason=f"the answer has no place here: {error.strerror or error}"), b"", b"", cut=False)
    return Call(ran, began, time.time(), ran.ended.how == "timed_out" and deadline.stopped())


def _kept(case: Case, node: Node, call: Call, accept: Accept) -> tuple[bool, bool]:
    """Put what came of it into the case. Return whether the node has spoken, and whether it told something."""
    answer = read_answer(call.ran.stdout, accept) if call.ran is not None else Answer()
    skew = _skew_s(call, answer)
    outcome, says = outcome_of(node, call, answer, accept)
    data: dict[str, object] = {"clock_skew_s": round(skew, 3), "host": answer.host, **_clock(call, answer)} if answer.begun else {}
    if answer.none:
        data["answered"] = True
    if call.ran is None or call.interrupted:
        data["asked"] = False
    source, took_s = os.path.basename(node.argv[0]), call.ended - call.began
    subject = Subject("host", host=node.name)
    case.add(KIND, subject=subject, cell=accept.cell, source=source, began=call.began, took_s=took_s, outcome=outcome, reason=says, data=data)
    if outcome not in ("ok", "partial"):
        return answer.whole, False
    for record in answer.records:
        case.keep(at_host(record, node.name, skew))
    return True, True


def _skew_s(call: Call, answer: Answer) -> float:
    """How far the node's clock is from ours. By its last line; by its first where it was cut off, which may have been on its way for a while."""
    if answer.now:
        skew = answer.now - call.ended
        if answer.began and skew <= 0 <= answer.began - call.began:  # the call may have lasted longer than the answer, as with a silent host in one tree
            return 0.0
        return skew if abs(skew) > SKEW_S else 0.0
    skew = (answer.began or call.began) - call.began
    return skew if abs(skew) > START_S else 0.0


def _clock(call: Call, answer: Answer) -> dict[str, float]:
    """The node's clock against ours: it spoke first after we had called, and last before it was over, so that the truth lies between the two."""
    if answer.began is None or answer.now is None:
        return {}
    most, least = answer.began - call.began, answer.now - call.ended
    return {"clock_offset_s": round((most + least) / 2, 3), "clock_within_s": round(abs(most - least) / 2, 3)}


def outcome_of(node: Node, call: Call, answer: Answer, accept: Accept) -> tuple[LookOutcome, str]:
    """What the answer is worth, and the sentence that says what is amiss with it. A node that froze after its first words has not answered."""
    ran = call.ran
    if ran is None:
        return "unavailable", f"{node.name} was not asked: {'the look was interrupted' if call.interrupted else 'the time was over'}"
    late = ran.ended.how == "timed_out" and not answer.whole
    told = any(record.kind == accept.tells for record in answer.records)
    if told and answer.whole and not answer.flood and not ran.cut and not answer.reason:
        return "ok", ""
    if call.interrupted and not told:
        return "unavailable", f"{node.name} had not answered when the look was interrupted"
    if answer.reason and not told:
        return "unavailable", answer.reason
    if told:
        if late:
            much = f"not its end within {call.ended - call.began:.0f} s" if not call.interrupted else "not its end when the look was interrupted"
        else:
            much = "more than a look has to say" if answer.flood or ran.cut else "not its end" if not answer.whole else f"then: {answer.reason}"
        return "partial", f"{node.name} sent {len(answer.records)} records and {much}"
    if late:
        return "timed_out", f"{node.name} did not answer within {call.ended - call.began:.0f} s"
    lines = ran.stderr[-4000:].decode("utf-8", "replace").strip().splitlines()
    why = (
        [line for line in lines if not _AFTERWARDS.search(line)][-1:]
        or lines[-1:]
        or [ran.ended.reason or f"it ended with {_ending(ran)} and {f'told of no {accept.tells}' if answer.begun else 'said nothing'}"]
    )
    return "unavailable", f"{node.name} cannot be looked at: {why[0][:300]}"


def _ending(ran: Ran) -> str:
    return f"code {ran.ended.code}" if ran.ended.code is not None else f"signal {ran.ended.signal}"
