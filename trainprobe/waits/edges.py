"""The one builder of the wait-for graph: from each rank to what it waits for, and from there on, as
far as the evidence shows, for live jobs, cells of the ladder, dumps and logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trainprobe.facts import Facts, FrameValue, LockWait, MainThread, OpenFile, ProcessState
from trainprobe.model.unnumbered import pid_of
from trainprobe.model.waits import Node, Wait
from trainprobe.stacks.parting_names import OTHER_END
from trainprobe.stacks.places import is_user
from trainprobe.stacks.progress import is_before
from trainprobe.stacks.rules import RPC, RPC_HANDLER
from trainprobe.stacks.servers import stands_in
from trainprobe.waits.activity import ON_CHILDREN, Watch, is_helper, watch_of
from trainprobe.waits.calls_for_locks import asked_inside_a_call
from trainprobe.waits.collective_waits import collective_waits
from trainprobe.waits.far_ends import far_ends
from trainprobe.waits.graph import Graph
from trainprobe.waits.peers import P2P_OPS, peer_in
from trainprobe.waits.recorder_waits import RecordedWait
from trainprobe.waits.servers import is_server
from trainprobe.waits.standings import AT_THE_STORE, IN_COLLECTIVE, Standing, meetings_of

HALF = 0.5
_HOLDS_A_LOCK = re.compile(r"^with\b.*(?:lock|baton)", re.IGNORECASE)


class Edges:
    """Builds the graph of one cell. `names` describe the nodes for which a number alone says too
    little.
    """

    def __init__(
        self,
        facts: Facts,
        cell: str,
        ranks: Sequence[Standing],
        watch: Watch | None = None,
        recorded: Mapping[int, RecordedWait] | None = None,
    ) -> None:
        self.facts, self.cell, self.ranks = facts, cell, ranks
        self.watch = watch or watch_of(facts, cell)
        self.of_rank = {standing.rank: Node("rank", str(standing.rank)) for standing in ranks}
        self.of_pid = {
            standing.pid: self.of_rank[standing.rank] for standing in ranks if standing.pid
        }
        self.by_rank = {standing.rank: standing for standing in ranks}
        self.recorded = collective_waits(facts, cell) if recorded is None else recorded
        self.names: dict[Node, str] = {}
        self._pids: dict[Node, int] = {}
        self.waits: list[Wait] = []
        self._walked: set[int] = set()

    def graph(self) -> Graph:
        """Every wait that was seen, from every rank on."""
        meetings = {
            rank: meeting
            for rank, meeting in meetings_of(self.ranks).items()
            if not self._is_p2p(rank) and self.by_rank[rank].op != RPC
        }
        for meeting in dict.fromkeys(meetings.values()):
            self._absent_from(meeting, meetings)
        for standing in self.ranks:
            me = self.of_rank[standing.rank]
            if standing.rank in meetings:
                meeting = meetings[standing.rank]
                where = standing.where
                if standing.thread is None and standing.rank in self.recorded:
                    where = where.partition(" at ")[2]  # what was called is named by the meeting
                at = "" if not where or meeting.endswith(where) else f" at {where}"
                self._add(me, Node("collective", meeting), f"is inside {meeting}{at}", standing)
            elif standing.goes_on or not standing.alive or standing.state in ("stopped", "blocked"):
                continue
            elif standing.in_collective:
                self._of_peer(standing, me)
            elif standing.leaf == AT_THE_STORE:
                at_key = standing.thread is not None and standing.thread.at_a_key
                how = (
                    "waits in the store for a key from" if at_key else "waits at the rendezvous for"
                )
                for other in self.ranks:
                    if other.rank != standing.rank and other.leaf != AT_THE_STORE:
                        self._add(me, self.of_rank[other.rank], how, standing)
            elif standing.pid is not None:
                self._of_process(standing.pid, me, standing.evidence)
        self._of_the_unseen()
        return Graph(self.of_rank.values(), self.waits)

    def say(self, node: Node) -> str:
        """`rank 3`, `pid 911 (python prep.py)`, `the lock on /data/x.lock`."""
        if node in self.names:
            return self.names[node]
        return {"process": "pid ", "lock": "the lock on ", "rank": "rank ", "peer": ""}.get(
            node.kind, ""
        ) + node.key

    def pid_of(self, node: Node) -> int | None:
        """The process that a node stands for, with its host where there are several; None where
        it is none.
        """
        return self._pids.get(node)

    def _is_p2p(self, rank: int) -> bool:
        return self.by_rank[rank].op.split(" #")[0] in P2P_OPS

    def _absent_from(self, meeting: str, meetings: dict[int, str]) -> None:
        """Members of unknown number (a backward of DDP, a recorder of gloo): a rank outside of all
        communication is likelier to be missing than one that waits in another collective, and the
        edge has half weight.
        """
        inside = [rank for rank, name in meetings.items() if name == meeting]
        recorded = [self.recorded[rank] for rank in inside if rank in self.recorded]
        all_recorded = len(recorded) == len(inside)
        sure = all_recorded and all(wait.sure for wait in recorded)
        shared = {id(wait.awaited): wait.awaited for wait in recorded}
        awaited = {rank for ranks in shared.values() for rank in ranks}
        absent = [
            other
            for other in self.ranks
            if meetings.get(other.rank) != meeting and (not sure or other.rank in awaited)
        ]
        unknown = not sure and (all_recorded or meeting == "backward")
        if unknown:
            absent = [other for other in absent if not other.in_collective] or absent
        self.waits += [
            Wait(
                Node("collective", meeting),
                self.of_rank[other.rank],
                "has not been joined by",
                weight=HALF if unknown else 1.0,
                evidence=other.evidence,
            )
            for other in absent
        ]

    def _of_peer(self, standing: Standing, me: Node) -> None:
        """A send or receive: to the rank that it names; where none can be read, to all that are
        in no communication, else to those that exchange data too, else to all others.
        """
        wait, thread, peer = self.recorded.get(standing.rank), standing.thread, None
        if wait is not None and wait.call.p2p:
            if wait.call.peer is not None and not wait.awaited:  # both halves are under way
                self._add(
                    me, Node("collective", wait.meeting), f"is inside {wait.meeting}", standing
                )
                return
            peer = wait.call.peer
        elif (told := self._other_end(standing)) is not None:
            peer = told
        elif thread is not None and pid_of(standing.rank) is None:
            # a process without a known rank cannot tell what `rank + 1` is
            texts = [
                text
                for frame in reversed(thread.frames)
                if (key := (frame.file, frame.line)) in self.watch.sites
                for text in (self.watch.sites[key].text, *self.watch.sites[key].made.split("; "))
            ]
            peer = next(
                (
                    found
                    for text in texts
                    if (found := peer_in(text, standing.rank, len(self.ranks), standing.op))
                    is not None
                ),
                None,
            )
        if peer in self.of_rank:
            way = "from" if standing.op.split(" #")[0] in ("recv", "irecv") else "to"
            how = f"is in {standing.op} at {standing.where}, {way}"
            self._add(me, self.of_rank[peer], how, standing)
            return
        others = [other for other in self.ranks if other.rank != standing.rank]
        if standing.op == RPC and (asked := self._asked(others)) is not None:
            others = asked
        outside = [other for other in others if not other.in_collective]
        for other in outside or [o for o in others if self._is_p2p(o.rank)] or others:
            self._add(
                me,
                self.of_rank[other.rank],
                f"is in {standing.op} at {standing.where}, perhaps with",
                standing,
                weight=HALF,
            )

    def _asked(self, others: Sequence[Standing]) -> list[Standing] | None:
        """Who may work at a request of torch's RPC: those of whom a thread answers one, or that
        cannot be seen. None where nobody tells: where some rank runs code beside all requests.
        """
        answering = [
            other for other in others if other.thread is None or self._answers(other.thread)
        ]
        idle = all(
            is_server(other) or other.op == RPC for other in others if other not in answering
        )
        return answering if answering or idle else None

    def _answers(self, main: MainThread) -> bool:
        """Is it, or another thread of its process, in the code of a request?"""
        stacks = [main.frames]
        if threads := self.watch.threads.get(main.pid):
            stacks += [one.frames for one in threads if one.look == threads[-1].look]
        return any(
            stands_in(frame, RPC_HANDLER) and any(is_user(one) for one in frames)
            for frames in stacks
            for frame in frames
        )

    def _other_end(self, standing: Standing) -> int | None:
        """The rank that the arguments of torch's own send or receive name."""
        return next(
            (
                int(value.value)
                for value in self.facts.of(FrameValue, cell=self.cell, rank=standing.rank)
                if OTHER_END.get(value.function) == value.name and value.value.isdecimal()
            ),
            None,
        )

    def _of_process(self, pid: int, me: Node, evidence: tuple[str, ...]) -> None:
        """What a process that is no collective's member waits for: a lock, a child, a pipe, the
        other end of a socket.
        """
        if pid in self._walked:
            return
        self._walked.add(pid)
        main, process = self.watch.mains.get(pid), self.watch.processes.get(pid)
        if self._of_locks(pid, me, main, evidence):
            return
        leaf = self.watch.leaf(pid)
        asks = self.watch.asks_for_children(pid)
        if (leaf in ON_CHILDREN or asks) and self._of_children(pid, me, evidence, asks=asks):
            return
        if process is not None and leaf in ("net-io", "file-io", "child-wait"):
            self._of_descriptors(me, process, evidence)

    def _of_locks(
        self, pid: int, me: Node, main: MainThread | None, evidence: tuple[str, ...]
    ) -> bool:
        for lock in self.facts.of(LockWait, cell=self.cell):
            if lock.pid == pid:
                node = Node("lock", lock.path or "a file")
                self._add(me, node, "wants", ids=evidence)
                if lock.holder_pid:
                    self._add(node, self._process(lock.holder_pid), "is held by", ids=lock.evidence)
                return True
        if main is None:
            return False
        if not main.lock_path:
            return self._of_locks_inside_a_call(me, main, evidence)
        node = Node("lock", main.lock_path)
        self._add(me, node, f"asks again and again for (at {main.where})", ids=evidence)
        for holder, ids in self._holders(pid, main.lock_path).items():
            self._add(node, self._process(holder), "is held by", ids=ids)
        return True

    def _of_locks_inside_a_call(
        self, me: Node, main: MainThread, evidence: tuple[str, ...]
    ) -> bool:
        frame = main.frames[-1] if main.frames else None
        site = self.watch.sites.get((frame.file, frame.line)) if frame is not None else None
        process = self.watch.processes.get(main.pid)
        locks = asked_inside_a_call(self.facts, self.cell, main, process, site)
        for lock in locks:
            node = Node("lock", lock.path)
            self._add(me, node, f"asks again and again for (at {main.where})", ids=evidence)
            self._add(node, self._process(lock.pid), "is held by", ids=lock.evidence)
        return bool(locks)

    def _holders(self, pid: int, path: str) -> dict[int, tuple[str, ...]]:
        """Processes that keep the lock's file open, or whose own code stands inside a `with` of
        a lock while they do not ask for one.
        """
        asking = {other for other, main in self.watch.mains.items() if main.lock_path}
        found = {
            fact.pid: fact.evidence
            for fact in self.facts.of(OpenFile, cell=self.cell)
            if fact.path == path and fact.pid != pid and fact.pid not in asking
        }
        if found:
            return found
        for other, main in self.watch.mains.items():
            if other == pid or other in asking:
                continue
            blocks = [
                block
                for frame in main.frames
                if (site := self.watch.sites.get((frame.file, frame.line)))
                for block in site.blocks
            ]
            if any(block.kind == "with" and _HOLDS_A_LOCK.search(block.text) for block in blocks):
                found[other] = main.evidence
        return found

    def _of_children(
        self, pid: int, me: Node, evidence: tuple[str, ...], *, asks: bool = False
    ) -> bool:
        """The children for which it may wait, without those that only serve it."""
        found = False
        for child in self.watch.awaited_children(pid):
            main = self.watch.mains.get(child.pid)
            if (
                child.ppid != pid
                or child.state in ("Z", "X")
                or is_helper(child)
                or (main is not None and main.leaf == "worker-idle")
            ):
                continue
            node = self._process(child.pid)
            how = "asks again and again after its child" if asks else "waits for its child"
            self._add(me, node, how, ids=(*evidence, *child.evidence))
            found = True
        return found

    def _of_descriptors(self, me: Node, process: ProcessState, evidence: tuple[str, ...]) -> None:
        for end in far_ends(self.facts, self.cell, process):
            ids = (*evidence, *end.evidence)
            for other in end.pids:
                self._add(me, self._process(other, end.commands.get(other, "")), end.how, ids=ids)
            if end.kind == "socket" and not end.pids:
                self._add(me, Node("peer", end.name), end.how, ids=ids)

    def _of_the_unseen(self) -> None:
        """Ranks of which only /proc was seen and that sleep, or that ask again and again: they
        wait, if anything, for the stopped and the missing, and for those that have not come as far
        in the same function and are in no communication.
        """
        to_blame = [
            one
            for one in self.ranks
            if one.state in ("stopped", "blocked", "exited", "crashed")
            or (one.state == "unseen" and one.pid is None)
        ]
        waiting = {wait.waiter for wait in self.waits}
        for standing in self.ranks:
            me = self.of_rank[standing.rank]
            if me in waiting:
                continue
            polls = self._polls(standing)
            asks = polls or (standing.leaf == "net-io" and not standing.goes_on)
            if standing.state == "waiting" and (standing.thread is None or asks):
                behind = [
                    other
                    for other in self.ranks
                    if polls and not self._polls(other) and _is_behind(other, standing)
                ]
                for other in dict.fromkeys((*to_blame, *behind)):
                    how = (
                        f"{'asks again and again' if polls else 'waits'} at {standing.where},"
                        " perhaps for"
                        if asks
                        else "sleeps, and may wait for"
                    )
                    self._add(me, self.of_rank[other.rank], how, standing, weight=HALF)

    def _polls(self, standing: Standing) -> bool:
        return standing.pid is not None and self.watch.activity(standing.pid).kind == "polls"

    def _process(self, pid: int, command: str = "") -> Node:
        """The node of a process: its rank's where it is one. Its own waits are followed. `command`
        is known of one that is not of the job.
        """
        if pid in self.of_pid:
            return self.of_pid[pid]
        node = Node("process", str(pid))
        self._pids[node] = pid
        if node not in self.names:
            process, main = self.watch.processes.get(pid), self.watch.mains.get(pid)
            what = [
                word
                for word in (
                    _role(process),
                    f"at {main.where}"
                    if main is not None and main.where
                    else _command(process, command),
                )
                if word
            ]
            self.names[node] = f"pid {pid}" + (f" ({', '.join(what)})" if what else "")
            if (
                not self.watch.activity(pid).goes_on
                and process is not None
                and process.state not in ("T", "t")
            ):
                self._of_process(pid, node, process.evidence)
        return node

    def _add(
        self,
        waiter: Node,
        awaited: Node,
        how: str,
        standing: Standing | None = None,
        *,
        ids: tuple[str, ...] = (),
        weight: float = 1.0,
    ) -> None:
        since_s = standing.since_s or 0.0 if standing is not None else 0.0
        self.waits.append(
            Wait(
                waiter,
                awaited,
                how,
                since_s=since_s,
                weight=weight,
                evidence=standing.evidence if standing is not None else ids,
            )
        )


def _is_behind(one: Standing, other: Standing) -> bool:
    if one.thread is None or other.thread is None or one.leaf in (*IN_COLLECTIVE, AT_THE_STORE):
        return False
    return is_before(one.thread.frames, other.thread.frames)


def _role(process: ProcessState | None) -> str:
    if process is None or process.role in ("", "rank"):
        return ""
    of = f" of rank {process.rank}" if process.rank is not None else ""
    return f"{process.role.replace('-', ' ')}{of}"


def _command(process: ProcessState | None, command: str) -> str:
    return (process.cmdline if process is not None else command)[:80]
