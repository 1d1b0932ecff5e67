"""The verdict on a live job, by rule: who waits for whom, whether the one at the end works, and
since when nobody got on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, Job, MainThread, Rung, Samples
from trainprobe.model.diagnosis import Verdict
from trainprobe.model.waits import Node
from trainprobe.stacks.stillness import HUNG_S
from trainprobe.waits.activity import watch_of
from trainprobe.waits.collective_waits import collective_waits
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.doubts import earned, unlaunched, unlike, with_own_line
from trainprobe.waits.dump_hangs import (
    dumped_world,
    lone_stack,
    only_dumps,
    saved_groups,
    saved_standings,
)
from trainprobe.waits.ended_jobs import ITS_LOG, all_ended, ended_together
from trainprobe.waits.hang_groups import HangGroups
from trainprobe.waits.headlines import go_on, headline, nowhere
from trainprobe.waits.launching import launcher_group, waiting_launchers, waits_s
from trainprobe.waits.live_graph import LiveGraph
from trainprobe.waits.live_standings import live_standings
from trainprobe.waits.printed_steps import last_step_ago_s
from trainprobe.waits.situation import Situation
from trainprobe.waits.slowness import IDLE_S, SAME_RANK, rarely_seen, slow_groups
from trainprobe.waits.sorted_ends import SortedEnds
from trainprobe.waits.standings import AT_THE_STORE
from trainprobe.waits.suspects import PROBE
from trainprobe.waits.unreached import unreached_group

SHORT_S = 2.0
"""Where nobody has waited for longer than this, everybody has moved since; between the two
bounds nobody can tell.
"""


def live_views(facts: Facts) -> tuple[Situation, ...]:
    """One view per job of the case; restarts that have been replaced are not judged."""
    return tuple(live_view(facts, job) for job in facts.of(Job))


def live_view(facts: Facts, job: Job) -> Situation:
    """Judge one live job, or one of which only dumps were saved."""
    if only_dumps(job):
        return replace(_saved_view(facts, job), world_size=job.world_size or 0)
    watch = watch_of(facts, job.cell)
    ranks = live_standings(facts, job, watch)
    started = any(one.state != "unseen" for one in ranks)
    launchers = waiting_launchers(facts, job) if not started and (job.nnodes or 1) > 1 else ()
    if launchers:
        view = _launching(facts, job, launchers, waits_s(watch, launchers))
        return replace(view, world_size=job.world_size or 0, running=True)
    if not ranks:
        return Situation(
            job.cell,
            "undetermined",
            conclusive=False,
            says="No rank of this job could be found",
            world_size=job.world_size or 0,
            running=True,
        )
    rung = Rung(job.evidence, job.cell, None, 0, PROBE, "", len(ranks), "timed_out")
    view = _View(LiveGraph(facts, job, rung, ranks, watch)).judged()
    view = replace(view, world_size=job.world_size or 0, running=True)
    view = with_own_line(earned(view, facts, job), facts)
    return unlike(unlaunched(view, job), facts, job)


def _launching(
    facts: Facts, job: Job, launchers: Sequence[MainThread], waits: float | None
) -> Situation:
    group = launcher_group(facts, job, launchers, PROBE)
    if waits is not None and waits < HUNG_S:
        return Situation(
            job.cell,
            "healthy",
            conclusive=False,
            says=f"not hung so far: {job.launcher} waits at the rendezvous for other nodes",
        )
    return Situation(job.cell, "hung", conclusive=True, says=group.says, groups=(group,))


def _saved_view(facts: Facts, job: Job) -> Situation:
    waits = collective_waits(facts, job.cell)
    ranks = saved_standings(facts, job.cell, dumped_world(facts, job, waits), waits)
    groups = saved_groups(facts, job.cell, ranks, waits)
    alone = lone_stack(facts, job, ranks) if not groups else None
    if alone is not None:
        return Situation(
            job.cell,
            "undetermined",
            conclusive=False,
            says=alone.says,
            ranks=ranks,
            groups=(alone,),
        )
    if not groups:
        return Situation(
            job.cell,
            "undetermined",
            conclusive=False,
            says="nobody waited in a collective when these dumps were written",
            ranks=ranks,
        )
    says: dict[int, str] = {}  # thousands of ranks wait for the same ones
    waits_for = {
        rank: says.get(id(wait.awaited))
        or says.setdefault(id(wait.awaited), ranks_say(wait.awaited))
        for rank, wait in waits.items()
        if wait.awaited
    }
    return Situation(
        job.cell,
        "hung",
        conclusive=True,
        says=headline(groups[0], ranks),
        ranks=ranks,
        groups=groups,
        waits_for=waits_for,
    )


class _View:
    def __init__(self, live: LiveGraph) -> None:
        self.live, self.ends = live, SortedEnds(live)
        self.facts, self.job, self.rung, self.ranks = live.facts, live.job, live.rung, live.ranks
        self.graph, self.by_node = live.graph, live.by_node
        self.watch, self.edges = live.watch, live.edges

    def judged(self) -> Situation:
        if not any(
            standing.thread or standing.process or standing.state in ("exited", "crashed")
            for standing in self.ranks
        ):
            return self._view(
                "undetermined", "no rank's stack or state could be read", conclusive=False
            )
        if all_ended(self.ranks):
            return self._over()
        hung = self.ends.hung
        serving = [end for end in hung if len(end) == 1 and self.live.is_server(end[0])]
        if serving and len(serving) == len(hung):
            who = self.edges.say(serving[0][0])
            says = (
                f"{who} waits for requests and the others for it: idle, if nobody has asked it for"
                " anything"
            )
            return self._view("undetermined", says, conclusive=False)
        hung = [end for end in hung if end not in serving or self.graph.reaches(end)]
        unreached = unreached_group(self.facts, self.job, self.rung, self.ranks) if hung else None
        if unreached is not None:
            return replace(self._view("hung", unreached.says), groups=(unreached,))
        if hung and (ago_s := self._stepped_since(hung)) is not None:
            says = (
                f"{self.edges.say(hung[0][0])} {self.live.activity(hung[0][0]).says or 'stands'},"
                f" but the job printed a step {ago_s:.0f} s ago, after it had come there: so"
                " somebody goes on"
            )
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._watch())
        if hung:
            groups = HangGroups(self.live).groups(
                [*hung, *self._at_one_rendezvous(hung, self.ends.young)]
            )
            if not groups:  # the end is nobody whom the evidence makes a rank of this job
                return self._view(
                    "undetermined", "somebody is waited for who cannot be told", conclusive=False
                )
            return replace(self._view("hung", headline(groups[0], self.ranks)), groups=groups)
        return self._not_hung()

    def _stepped_since(self, hung: Sequence[tuple[Node, ...]]) -> float | None:
        """For how many seconds the job has been silent since it printed a step, where that was
        after all that hang, and wait for these, had come to their places; None where it was not.
        Where all ranks wait none of them has printed it, unless nobody knows since when they do.
        """
        ago_s = last_step_ago_s(self.facts, self.job.cell)
        if ago_s is None or any(self.live.has_failed(node) for end in hung for node in end):
            return None
        nodes = {node for end in hung for node in (*end, *self.graph.reaches(end))}
        ages = [activity.age_s for node in nodes if (activity := self.live.activity(node)).says]
        known = [age for age in ages if age is not None]
        all_wait = nodes >= set(self.by_node)
        if len(known) == len(ages) and (all_wait or ago_s + HUNG_S > min(known, default=0.0)):
            return None
        return ago_s if len(known) == len(ages) or ago_s < HUNG_S else None

    def _not_hung(self) -> Situation:
        if (undecided := self._undecided()) is not None:
            return undecided
        if (slow := self._slow()) is not None:
            return slow
        waiters = self.live.waiters(self.ends.works)
        if (unseen := self._unseen_to_get_on(self.ends.works)) is not None:
            return unseen
        view = self._healthy(self.ends.works)
        rare = rarely_seen(self.rung, self.ranks, self.facts.of(Samples, cell=self.job.cell))
        if view.verdict != "healthy" or not (rare or waiters):
            return view
        says = f"{view.says}; {rare.says}" if rare else view.says
        if rare is not None and rare.open:
            view = self._view("undetermined", says, conclusive=False)
            view = replace(view, groups=(rare.group,) if rare.group is not None else ())
        return replace(
            view, says=says, next_look=self._watch_steps(rare.watch if rare else SAME_RANK)
        )

    def _slow(self) -> Situation | None:
        waiters = self.live.waiters(self.ends.works)
        slow = slow_groups(self.facts, self.rung, self.ranks, self.watch, waiters)
        return replace(self._view("slow", slow[0].says), groups=slow) if slow else None

    def _undecided(self) -> Situation | None:
        """What leaves open whether the job goes on; None where it does."""
        left = [standing.rank for standing in self.ranks if standing.ending is not None]
        if left:
            return self._view(
                "undetermined", f"{ranks_say(left)} ended while the others go on", conclusive=False
            )
        if self.ends.young:
            # who waits for a while in each step holds the others up, however young the wait of now
            if (slow := self._slow()) is not None:
                return slow
            wait = self.ends.at_most(self.ends.young[0]) or self.ends.age(self.ends.young[0])
            longest = f": the longest wait is {wait:.1f} s" if wait is not None else ""
            says = (
                f"not hung so far{longest}; a hang shows after {HUNG_S:.0f} s, so attach again in"
                f" {max(1.0, HUNG_S + 1 - (wait or 0.0)):.0f} s"
            )
            if wait is not None and wait < SHORT_S:
                return self._view("healthy", says)
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._attach())
        if self.ends.open:
            return self._of_unknown_age(self.ends.open[0])
        unseen = [
            standing for standing in self.ranks if standing.thread is None and not standing.goes_on
        ]
        if unseen:
            gone = [one.rank for one in unseen if one.pid is None]
            says = (
                f"{ranks_say(gone)} of {self.job.world_size or len(self.ranks)}"
                f" {'has' if len(gone) == 1 else 'have'} {nowhere(self.job)}"
                if gone
                else ""
            )
            return self._view(
                "undetermined",
                says
                or f"the stacks of {ranks_say([one.rank for one in unseen])} could not be read",
                conclusive=False,
            )
        toiling = self.live.toiling(self.ends.toils[0]) if self.ends.toils else None
        if toiling is not None:
            says = (
                f"worker {toiling[0].pid} {self.watch.activity(toiling[0].pid).says} and all ranks"
                " wait for it: a long batch, or a loop without an end"
            )
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._watch())
        return None

    def _unseen_to_get_on(self, works: Sequence[tuple[Node, ...]]) -> Situation | None:
        """Health is earned: who computes alone for as long as this may go round for ever, unless
        something shows that it gets on.
        """
        for end in works:
            waits_s = [one.since_s or 0.0 for one in self.live.victims(end)]
            pids = [pid for node in end if (pid := self.live.pid_of(node)) is not None]
            if max(waits_s, default=0.0) < IDLE_S or any(map(self._gets_on, pids)):
                continue
            says = (
                f"{self.edges.say(end[0])} {self.live.activity(end[0]).says}, and others have"
                f" waited for it for {max(waits_s):.0f} s: a long task, or a loop without an end;"
                " nothing that was looked at tells which"
            )
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._watch())
        return None

    def _gets_on(self, pid: int) -> bool:
        """Was more seen of it than that it computes: a value that moved on, output, files?"""
        process = self.watch.processes.get(pid)
        return self.watch.moves_on(pid) is not None or (
            process is not None and bool(process.wrote_bytes or process.read_moved)
        )

    def _over(self) -> Situation:
        """Nobody is left to wait."""
        self.ranks, groups, says = ended_together(self.facts, self.rung, self.ranks)
        verdict: Verdict = "crashed" if groups else "undetermined"
        return replace(
            self._view(verdict, says, conclusive=bool(groups)), groups=groups, next_look=ITS_LOG
        )

    def _at_one_rendezvous(
        self, hung: Sequence[tuple[Node, ...]], young: Sequence[tuple[Node, ...]]
    ) -> list[tuple[Node, ...]]:
        """Ends that stand at the same line of the rendezvous as one that hangs: a rank that
        tries to connect again and again has never slept for long.
        """
        at = [
            {(one.leaf, one.where) for node in end if (one := self.by_node.get(node)) is not None}
            for end in hung
        ]
        places = {place for found in at for place in found if place[0] == AT_THE_STORE and place[1]}
        return [
            end
            for end in young
            if all(
                (one := self.by_node.get(node)) is not None and (one.leaf, one.where) in places
                for node in end
            )
        ]

    def _of_unknown_age(self, end: Sequence[Node]) -> Situation:
        who, activity = self.edges.say(end[0]), self.live.activity(end[0])
        unclear = next((node for node in end if self.live.activity(node).kind == "unclear"), None)
        if unclear is not None:
            says = f"{self.edges.say(unclear)} {self.live.activity(unclear).says}"
            return replace(
                self._view("undetermined", says, conclusive=False), next_look=self._watch()
            )
        says = (
            f"{who} {activity.says or 'stands'} and wakes now and then: since when it waits for the"
            f" same cannot be told from {self.live.looked_s(end):.0f} s of looking"
        )
        return replace(self._view("undetermined", says, conclusive=False), next_look=self._watch())

    def _attach(self) -> str:
        return f"trainprobe attach {self.job.launcher_pid or self.ranks[0].pid or 'PID'}"

    def _watch(self) -> str:
        look = f"{self._attach()} --watch 60 --times 2"
        return f"{look}: who still stands there a minute later hangs"

    def _watch_steps(self, what: str) -> str:
        return f"{self._attach()} --watch 30 --times 4: {what}"

    def _healthy(self, works: Sequence[tuple[Node, ...]]) -> Situation:
        waited_for = [(end, victims) for end in works if (victims := self.live.victims(end))]
        if waited_for:
            end, victims = max(waited_for, key=lambda pair: len(pair[1]))
            waiting = sorted(standing.rank for standing in victims)
            says = (
                f"not hung: {self.edges.say(end[0])} {self.live.activity(end[0]).says} and"
                f" {ranks_say(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for it"
            )
        elif works:
            going = sorted(
                standing.rank
                for end in works
                for node in end
                if (standing := self.by_node.get(node)) is not None
            )
            who = (
                f"all {len(going)} ranks go on"
                if len(going) == len(self.ranks) > 2
                else go_on(going)
            )
            says = f"not hung: {who}"
        elif len(self.ranks) > 1:  # health is earned: somebody must be seen to go on
            first = self.ranks[0]
            doing = self.live.activity(Node("rank", str(first.rank))).says or "is idle"
            says = (
                f"nobody is seen to go on, nor to wait for another rank; {ranks_say([first.rank])}"
                f" {doing}: idle, if that is what it should do now"
            )
            return replace(
                self._view("undetermined", says, conclusive=False), next_look=self._watch()
            )
        else:
            says = (
                f"not hung: nobody waits for anybody; {ranks_say([self.ranks[0].rank])}"
                f" {self.live.activity(Node('rank', str(self.ranks[0].rank))).says or 'is idle'}"
            )
        return self._view("healthy", says)

    def _view(self, verdict: Verdict, says: str, *, conclusive: bool = True) -> Situation:
        return Situation(
            self.job.cell,
            verdict,
            conclusive,
            says,
            ranks=self.ranks,
            waits_for=self._waits_for(),
        )

    def _waits_for(self) -> dict[int, str]:
        """For each rank that waits: what for, and whom in the end."""
        found: dict[int, str] = {}
        for node, standing in self.by_node.items():
            awaited = [wait.awaited for wait in self.graph.waits_of(node)]
            ranks = sorted(
                {
                    int(end.key)
                    for one in awaited
                    for end in (
                        [one]
                        if one.kind == "rank"
                        else [w.awaited for w in self.graph.waits_of(one)]
                    )
                    if end.kind == "rank"
                }
                - {standing.rank}
            )
            others = [
                self.edges.say(one) for one in awaited if one.kind not in ("rank", "collective")
            ]
            if ranks or others:
                found[standing.rank] = ", ".join([*others, *([ranks_say(ranks)] if ranks else [])])
        return found
