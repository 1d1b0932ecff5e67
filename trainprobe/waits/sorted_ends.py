"""The ends of a live job's graph, sorted by what they show: who hangs, who works, who has
waited too briefly to tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.waits import Node
from trainprobe.stacks.stillness import FRESH_S, HUNG_S
from trainprobe.waits.activity import LONG_WAIT_S
from trainprobe.waits.live_graph import LiveGraph
from trainprobe.waits.servers import listens, serves
from trainprobe.waits.slowness import IDLE_S
from trainprobe.waits.standings import Standing

End = tuple[Node, ...]


class SortedEnds:
    """The ends of the graph by what they show; `open` are those of which nothing tells for how
    long they have lasted, `toils` those where a worker computes and all have long waited for it.
    """

    def __init__(self, live: LiveGraph) -> None:
        self.live = live
        self.by_node, self.graph, self.watch = live.by_node, live.graph, live.watch
        self.hung: list[End] = []
        self.young: list[End] = []
        self.open: list[End] = []
        self.toils: list[End] = []
        self.works: list[End] = []
        anybody_goes_on = any(standing.goes_on for standing in live.ranks)
        for end in live.graph.ends():
            victims = live.victims(end)
            if any(live.activity(node).goes_on for node in end):
                self._at_work(end, victims)
            elif (
                victims
                or len(end) > 1
                or self._stands_alone(end[0], anybody_goes_on=anybody_goes_on)
            ):
                self._place(end)
        self.hung += self._beside(self.hung) if self.hung else []

    def _at_work(self, end: End, victims: Sequence[Standing]) -> None:
        """Sort an end that somebody works at. One loader worker that computes while all ranks
        wait for it has a long batch, or a loop without an end; who passes through a loop time after
        time without a value that moves on, while others have long waited, is in such a loop.
        """
        toiling = self.live.toiling(end)
        waits_s = [one.since_s or 0.0 for one in victims]
        pids = [self.live.pid_of(node) for node in end]
        if min(waits_s, default=0.0) >= IDLE_S and any(
            pid is not None and self.watch.starts_anew(pid) is not None for pid in pids
        ):
            self.hung.append(end)
            return
        if toiling is None or not waits_s or min(waits_s) < HUNG_S:
            self.works.append(end)
        elif toiling[1] and min(waits_s) >= LONG_WAIT_S:
            self.hung.append(end)
        else:
            self.toils.append(end)

    def _place(self, end: End) -> None:
        """Sort an end that nobody was seen to work at, by how long it has lasted."""
        age, most = self.age(end), self.at_most(end)
        stands = any(
            self.live.activity(node).kind in ("stopped", "blocked") or self.live.has_failed(node)
            for node in end
        )
        if stands or self._kept_for_long(end):
            self.hung.append(end)
        elif any(self.live.activity(node).kind == "unclear" for node in end):
            self.open.append(end)
        elif age is not None and age >= HUNG_S:
            self.hung.append(end)
        elif (
            most is not None
            and most < FRESH_S
            and all(self.live.activity(node).wakes for node in end)
        ):
            self.works.append(end)
        elif most is not None and most < HUNG_S:
            self.young.append(end)
        elif age is None:
            self.hung.append(end)
        elif self._nobody_sleeps(end):
            self.open.append(end)
        else:
            self.young.append(end)

    def _kept_for_long(self, end: End) -> bool:
        """Have all that wait for it waited for a minute, while one call keeps its interpreter lock?
        Whether that call uses more and more memory tells nothing then.
        """
        waits_s = [one.since_s or 0.0 for one in self.live.victims(end)]
        pids = [self.live.pid_of(node) for node in end]
        return min(waits_s, default=0.0) >= LONG_WAIT_S and any(
            pid is not None and self.watch.kept_for_good(pid) for pid in pids
        )

    def at_most(self, end: Sequence[Node]) -> float | None:
        """For how long this end can have lasted at most: since one of it last exchanged data
        with another rank. None where nothing tells.
        """
        bounds = [self.live.activity(node).at_most_s for node in end]
        return (
            max((bound for bound in bounds if bound is not None), default=None)
            if None not in bounds
            else None
        )

    def _nobody_sleeps(self, end: Sequence[Node]) -> bool:
        """Does everybody of this end, and of those that wait for it, wake by itself? Then no nap
        tells since when they wait.
        """
        activities = [self.live.activity(node) for node in (*end, *self.graph.reaches(end))]
        return all(
            activity.wakes
            for activity in activities
            if not activity.goes_on and activity.age_s is not None
        )

    def _beside(self, hung: Sequence[End]) -> list[End]:
        """Ranks that go round in the very loop in which another one hangs, though nobody waits
        for them: the loop holds them all.
        """
        places = {
            self.by_node[node].where
            for end in hung
            for node in end
            if node in self.by_node and self.live.activity(node).kind in ("polls", "spins")
        } - {""}
        taken = {node for end in hung for node in end}
        found: list[End] = []
        for end in self.graph.ends():
            standing = self.by_node.get(end[0])
            if (
                len(end) == 1
                and end[0] not in taken
                and standing is not None
                and standing.where in places
                and self.live.activity(end[0]).kind in ("polls", "spins")
            ):
                found.append(end)
        return found

    def _stands_alone(self, node: Node, *, anybody_goes_on: bool) -> bool:
        """Is a rank for which nobody waits stuck by itself? One that sleeps, or serves whoever
        comes, is idle; beside others that work it may be.
        """
        standing = self.by_node.get(node)
        activity = self.live.activity(node)
        if standing is None or (standing.state == "unseen" and standing.pid is not None):
            return False
        if activity.kind in ("stopped", "blocked"):
            return True
        if anybody_goes_on or activity.kind in ("ended", "unseen"):
            return False
        if serves(standing):
            return False
        return activity.kind in ("polls", "spins", "unclear") or (
            activity.kind == "still" and (activity.wakes or standing.leaf not in ("sleep", ""))
        )

    def age(self, end: Sequence[Node]) -> float | None:
        """How long the longest sleeper of this end and its victims has slept; None where
        nobody's sleep is known.

        Where all of the end wait for answers from the network, only they count: a worker may have
        asked for its fifth file while a rank waits for the whole batch.
        """
        missing = any(node in self.by_node and self.by_node[node].pid is None for node in end)
        asking = [
            node
            for node in (*end, *(self.graph.reaches(end) if missing else ()))
            if self.live.activity(node).condition
        ]
        if asking and (missing or len(end) == 1):
            # a loop that asks wakes all the time; it has gone on for longer than its last sleep
            return None
        unanswered = [self._unanswered_s(node) for node in end]
        if None not in unanswered:
            return max(age for age in unanswered if age is not None)
        ages = [
            activity.age_s
            for node in (*end, *self.graph.reaches(end))
            if (activity := self.live.activity(node)).kind != "unseen" and not activity.goes_on
        ]
        spinning = [node for node in end if self.live.activity(node).kind == "spins"]
        known = [age for age in ages if age is not None]
        if spinning and len(known) == len(spinning) == len(ages):
            return None  # nobody sleeps: only the looks themselves tell
        return max(known, default=None)

    def _unanswered_s(self, node: Node) -> float | None:
        """For how long it has slept in one call that waits for an answer, or nothing has come to
        it; None for all others, also for those that ask again and again or wait to be asked.
        """
        pid, activity = self.live.pid_of(node) or 0, self.live.activity(node)
        main = self.watch.mains.get(pid)
        if (
            main is None
            or main.leaf != "net-io"
            or listens(main)
            or activity.kind != "still"
            or activity.age_s is None
        ):
            return None
        if activity.wakes or activity.condition:
            return None
        return max(activity.age_s, self.watch.silent_s.get(pid, 0.0))
