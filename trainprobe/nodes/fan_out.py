"""Runs a command on many nodes at once, and records what each sends, or why it sent nothing."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.model.evidence import Ended
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import Accept, Answer, all_at_host, at_host, is_whole, read_answer
from trainprobe.nodes.transports import Node
from trainprobe.nodes.tree import MANY, asked_by_tree
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
# Once half of the nodes have answered, the others get this many times as long as those took, and at
# least so many seconds more; but nobody is called silent before it had START_S to begin.
BEHIND = 2.0
LEAST_BEHIND_S = 3.0
OVERDUE_S = 1.0  # a command whose time is over is ended before this
SKEW_S = 1.0  # clocks further apart are corrected by the difference
# What srun prints after the reason for its end.
_AFTERWARDS = re.compile(
    r"Job step aborted|[Ff]orcing job termination|got SIG[A-Z]+|Force Terminated|CANCELLED"
    r" AT|STEPS? \S+ ON |: tasks? \S+: Exited with exit code"
)


@dataclass(frozen=True)
class Call:
    """One node's command; `ran` is None where it did not start in time. Unix times, in seconds."""

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
    overdue: Callable[[Sequence[str]], None] = lambda _: None,
) -> tuple[str, ...]:
    """Ask all nodes, `at_once` (default 64) at a time, and record their answers in `case`; return
    the names of the nodes that sent something. Each has `look_s`, and time to be reached.

    `most_s` bounds the whole instead; a node that would be left less than `look_s` is then not
    asked. Once half have answered, the others get time in proportion, unless `patient`. Each node
    has a record `node.look`: ok with the time it took and the offset of its clock, partial with
    what had come when its time was up, or the reason why there is no answer. Raises Interrupted
    after Ctrl-C, once everything is recorded and no command runs any more; `phase` goes into that
    record.
    """
    progress.note(f"Looking on {len(nodes)} nodes.")
    named: list[str] = []

    def heard(node: Node, call: Call) -> bool:
        answered, tells = _kept(case, node, call, accept)
        named.extend([node.name] if tells else [])
        return answered

    with Interruption() if interruption is None else contextlib.nullcontext(interruption) as asked:
        call_all(
            nodes,
            look_s,
            heard,
            asked,
            progress,
            patient=patient,
            most_s=most_s,
            at_once=at_once,
            overdue=overdue,
        )
    if asked.asked:
        case.add("interrupted", source="signal", data={"phase": phase, "cell": accept.cell})
        raise Interrupted
    return tuple(named)


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
    overdue: Callable[[Sequence[str]], None] = lambda _: None,
) -> None:
    """Run the commands of all nodes and pass each to `heard`, in this thread, when it has ended;
    `heard` returns whether the node has answered.

    Once the time of all is over, `overdue` gets the nodes whose commands still run, again and again
    until there are none.
    """
    width = max(1, at_once or AT_ONCE)
    began = time.monotonic()
    turns = -(-len(nodes) // width)  # those asked later may take as long
    until = began + (turns * (look_s + START_S) if most_s is None else most_s)
    answered = 0
    by_tree = (
        asked_by_tree(
            nodes, look_s + START_S if most_s is None else most_s, lambda: interruption.asked
        )
        if len(nodes) > MANY
        else {}
    )
    if by_tree:
        now = time.time()
        start = now - (time.monotonic() - began)
        for node in nodes:
            if node.name in by_tree:
                answered += heard(
                    node,
                    Call(
                        by_tree[node.name],
                        start,
                        now,
                        interruption.asked and by_tree[node.name].ended.how == "timed_out",
                    ),
                )
        nodes = [node for node in nodes if node.name not in by_tree]
        if most_s is None:  # nodes that the tree did not reach get as long again
            until = time.monotonic() + -(-len(nodes) // width) * (look_s + START_S)
        progress.note(
            f"{answered} nodes have answered; {len(nodes)} are left to be asked directly."
        )
    with ThreadPoolExecutor(max_workers=min(width, max(1, len(nodes)))) as pool:
        shorter = Shorter(until)
        least_s = look_s if most_s is not None and len(nodes) > width else 0.0
        waiting: dict[Future[Call], Node] = {}
        ended: queue.SimpleQueue[Future[Call]] = queue.SimpleQueue()
        later = iter(nodes)
        while True:
            # Of the others none is asked before there is room: a thousand answers that wait to be
            # read take more memory than all that is kept of them.
            for node in itertools.islice(later, 2 * width - len(waiting)):
                future = pool.submit(_asked, node, shorter, least_s)
                waiting[future] = node
                future.add_done_callback(ended.put)
            if not waiting:
                break
            done = _all_of(ended)
            shorter.interrupted = interruption.asked
            for future in done:
                answered += heard(waiting.pop(future), future.result())
            if time.monotonic() > shorter.until + OVERDUE_S:
                overdue([node.name for future, node in waiting.items() if future.running()])
            # An unreachable node fails at once, which is no measure for the others.
            if done and 2 * answered >= len(nodes) and waiting and not patient:
                took_s = time.monotonic() - began
                more_s = max(LEAST_BEHIND_S, (BEHIND - 1) * took_s)
                shorter.until = min(until, max(began + START_S, time.monotonic() + more_s))
            if done and not interruption.asked:
                names = ", ".join(node.name for node in list(waiting.values())[:3])
                progress.note(
                    f"{answered} of {len(nodes)} nodes have answered"
                    + (f"; waiting for {names}" if names else "")
                    + "."
                )


def _all_of(ended: queue.SimpleQueue[Future[Call]]) -> list[Future[Call]]:
    """What has ended; one of them is waited for, for a moment."""
    found: list[Future[Call]] = []
    with contextlib.suppress(queue.Empty):
        found.append(ended.get(timeout=AGAIN_S))
        while True:
            found.append(ended.get_nowait())
    return found


class Shorter:
    """The deadline of all nodes (time.monotonic), which may come nearer during the wait."""

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
            # srun may take many seconds to end where the way back from a node is blocked
            enough=is_whole,
            without_fork=True,
        )
    except OSError as error:  # no room for the answer, or no descriptor left
        ran = Ran(
            node.argv,
            Ended("not_started", reason=f"the answer has no place here: {error.strerror or error}"),
            b"",
            b"",
            cut=False,
        )
    return Call(ran, began, time.time(), ran.ended.how == "timed_out" and deadline.stopped())


def _kept(case: Case, node: Node, call: Call, accept: Accept) -> tuple[bool, bool]:
    """Record the answer. Return whether the node has answered, and whether it sent something."""
    answer = read_answer(call.ran.stdout, accept) if call.ran is not None else Answer()
    skew = _skew_s(call, answer)
    outcome, says = outcome_of(node, call, answer, accept)
    data: dict[str, object] = (
        {"clock_skew_s": round(skew, 3), "host": answer.host, **_clock(call, answer)}
        if answer.begun
        else {}
    )
    if answer.none:
        data["answered"] = True
    if call.ran is None or call.interrupted or call.ran.ended.how == "not_started":
        data["asked"] = False
    source, took_s = os.path.basename(node.argv[0]), call.ended - call.began
    subject = Subject("host", host=node.name)
    case.add(
        KIND,
        subject=subject,
        cell=accept.cell,
        source=source,
        began=call.began,
        took_s=took_s,
        outcome=outcome,
        reason=says,
        data=data,
    )
    if outcome not in ("ok", "partial"):
        return answer.whole, False
    for record in answer.records:
        case.keep(at_host(record, node.name, skew))
    case.keep_classes(
        [(all_at_host(records, node.name, skew), at) for records, at in answer.classes]
    )
    return True, True


def _skew_s(call: Call, answer: Answer) -> float:
    """The offset of the node's clock, by its last line, or by its first where that is missing; the
    first may have been on its way for a while.
    """
    if answer.now:
        skew = answer.now - call.ended
        # The call may last longer than the answer, as with a silent host in the same tree.
        if answer.began and skew <= 0 <= answer.began - call.began:
            return 0.0
        return skew if abs(skew) > SKEW_S else 0.0
    skew = (answer.began or call.began) - call.began
    return skew if abs(skew) > START_S else 0.0


def _clock(call: Call, answer: Answer) -> dict[str, float]:
    """The offset of the node's clock, and its bound by the first and last line's times."""
    if answer.began is None or answer.now is None:
        return {}
    most, least = answer.began - call.began, answer.now - call.ended
    return {
        "clock_offset_s": round((most + least) / 2, 3),
        "clock_within_s": round(abs(most - least) / 2, 3),
    }


def outcome_of(node: Node, call: Call, answer: Answer, accept: Accept) -> tuple[LookOutcome, str]:
    """The outcome of a call, and its flaw. A node that froze after its first line is late."""
    ran = call.ran
    if ran is None:
        why = "the look was interrupted" if call.interrupted else "the time was over"
        return "unavailable", f"{node.name} was not asked: {why}"
    late = ran.ended.how == "timed_out" and not answer.whole
    sent = answer.tells(accept.tells)
    if sent and answer.whole and not answer.flood and not ran.cut and not answer.reason:
        return "ok", ""
    if call.interrupted and not sent:
        return "unavailable", f"{node.name} had not answered when the look was interrupted"
    if answer.reason and not sent:
        return "unavailable", answer.reason
    if sent:
        if late and call.interrupted:
            flaw = "not its end when the look was interrupted"
        elif late:
            flaw = f"not its end within {call.ended - call.began:.0f} s"
        elif answer.flood or ran.cut:
            flaw = "more than a look may send"
        else:
            flaw = f"then: {answer.reason}" if answer.whole else "not its end"
        return "partial", f"{node.name} sent {answer.count} records and {flaw}"
    if late:
        return "timed_out", f"{node.name} did not answer within {call.ended - call.began:.0f} s"
    lines = ran.stderr[-4000:].decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if not _AFTERWARDS.search(line)] or lines
    reason = errors[-1] if errors else ran.ended.reason
    if not reason:
        code, number = ran.ended.code, ran.ended.signal
        ending = f"code {code}" if code is not None else f"signal {number}"
        flaw = f"sent no {accept.tells}" if answer.begun else "printed nothing"
        reason = f"it ended with {ending} and {flaw}"
    return "unavailable", f"{node.name} cannot be looked at: {reason[:300]}"
