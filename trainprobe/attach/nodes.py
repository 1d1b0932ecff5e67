"""One look on every node of a job, side by side: each node looks at its own part and sends its evidence home as lines.

The way there is the site's own: `srun --overlap` inside the job's allocation, or OpenSSH. A node that does not answer is evidence, too.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.system.run import Ran, run

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.model.progress import Progress

SCHEMA = "trainprobe.node/1"
KIND, REACH = "node.look", "reach"
AT_ONCE = 64
ANSWER_CAP_BYTES = 64 * 2**20
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
    """By the user's own OpenSSH, which asks for nothing. TRAINPROBE_SSH is another command for it, such as `ssh -F config`."""
    ssh = tuple(shlex.split(os.environ.get("TRAINPROBE_SSH") or "ssh"))
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={START_S:.0f}", "-T")
    return [Node(name, (*ssh, *options, name, shlex.join(ours(*words)))) for name in nodes]


def look_on_nodes(nodes: Sequence[Node], case: Case, look_s: float, progress: Progress) -> None:
    """Run the look on all nodes at once and put what they saw into `case`; a node has `look_s` and the time for the way.

    Where at least half have answered, the others are waited for in proportion to that, and not to the whole deadline. For each node there is a record `node.look`: ok with the time that it took and how far its clock is from ours (seconds), or why it gave no answer.
    """
    progress.note(f"Looking on {len(nodes)} nodes.")
    began = time.monotonic()
    until = began + look_s + START_S
    answered = 0
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, max(1, len(nodes)))) as pool:
        shorter = Shorter(until)
        waiting = {pool.submit(_asked, node, shorter): node for node in nodes}
        while waiting:
            done, _ = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            for one in done:
                answered += 1
                _kept(case, waiting.pop(one), *one.result())
            if done and 2 * answered >= len(nodes) and waiting:
                took_s = time.monotonic() - began
                shorter.until = min(until, time.monotonic() + max(LEAST_BEHIND_S, (BEHIND - 1) * took_s))
            names = ", ".join(node.name for node in list(waiting.values())[:3])
            progress.note(f"{answered} of {len(nodes)} nodes have answered" + (f"; waiting for {names}" if names else "") + ".")


class Shorter:
    """A deadline of all nodes (of time.monotonic) that may come nearer while they are waited for."""

    def __init__(self, until: float) -> None:
        self.until = until

    def passed(self) -> bool:
        return time.monotonic() > self.until


def _asked(node: Node, deadline: Shorter) -> tuple[Ran, float, float]:
    began = time.time()
    left_s = deadline.until - time.monotonic()
    return run(node.argv, timeout_s=max(0.1, left_s), output_cap_bytes=ANSWER_CAP_BYTES, kill_s=0.5, given_up=deadline.passed), began, time.time()


def _kept(case: Case, node: Node, ran: Ran, began: float, ended: float) -> None:
    records, head, tail = _read(ran.stdout)
    subject = Subject("host", host=node.name)
    took_s = ended - began
    if head is None:
        why = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [ran.ended.reason or f"it ended with code {ran.ended.code} and said nothing"]
        late = ran.ended.how == "timed_out"
        says = f"{node.name} did not answer within {took_s:.0f} s" if late else f"{node.name} cannot be looked at: {why[0][:300]}"
        case.add(KIND, subject=subject, source=node.argv[0], began=began, took_s=took_s, outcome="timed_out" if late else "unavailable", reason=says)
        return
    # Half of the way there and back is the best guess at when the node said what its time was; a skew below that cannot be told.
    skew = float(tail.get("now", ended)) - ended if tail else 0.0
    skew = skew if abs(skew) > SKEW_S else 0.0
    data = {"clock_skew_s": round(skew, 3), "processes": head.get("processes"), "host": head.get("host")}
    if tail is None:
        reason = f"{node.name} broke off its answer after {len(records)} records"
        case.add(KIND, subject=subject, source=node.argv[0], began=began, took_s=took_s, outcome="partial", reason=reason, data=data)
    elif tail.get("reason"):
        case.add(KIND, subject=subject, source=node.argv[0], began=began, took_s=took_s, outcome="unavailable", reason=str(tail["reason"])[:500], data=data)
    else:
        case.add(KIND, subject=subject, source=node.argv[0], began=began, took_s=took_s, data=data)
    for record in records:
        owner = replace(record.subject, host=node.name)
        case.add(
            record.kind,
            subject=owner,
            cell=record.cell,
            source=record.source,
            began=record.began - skew,
            took_s=record.took_s,
            outcome=record.outcome,
            reason=record.reason,
            data=_of_node(record, node.name),
        )


def _of_node(record: Evidence, name: str) -> dict[str, Any]:
    """A node is called as the site calls it, not as it calls itself."""
    return {**record.data, "host": name} if record.kind == "job" else dict(record.data)


def _read(answer: bytes) -> tuple[list[Evidence], dict[str, Any] | None, dict[str, Any] | None]:
    """The evidence in an answer, its first and its last line; lines that are none of ours, such as a banner, are passed over."""
    records: list[Evidence] = []
    head: dict[str, Any] | None = None
    tail: dict[str, Any] | None = None
    for line in answer.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if row.get("schema") == SCHEMA:
            head, tail = (row, tail) if row.get("says") == "begin" else (head, row)
        elif head is not None:
            try:
                records.append(from_json(Evidence, row))
            except ValueError:
                continue
    return records, head, tail
