"""The verdict on a live job, by rule: who waits for whom, whether the one at the end works, and
since when nobody got on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trainprobe.facts import Facts, Job, MainThread, ProcessState, Rung, Samples
from trainprobe.facts.samples import between_hosts, own_line
from trainprobe.model.diagnosis import Link, Verdict
from trainprobe.model.node_names import folded
from trainprobe.model.unnumbered import pid_of
from trainprobe.model.waits import Node
from trainprobe.stacks.stillness import FRESH_S, HUNG_S
from trainprobe.waits.activity import LONG_WAIT_S, Activity, Watch, watch_of
from trainprobe.waits.collective_waits import collective_waits
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.dump_hangs import (
    dumped_world,
    lone_stack,
    only_dumps,
    saved_groups,
    saved_standings,
)
from trainprobe.waits.edges import Edges
from trainprobe.waits.ended_jobs import ITS_LOG, all_ended, ended_together
from trainprobe.waits.graph import Graph
from trainprobe.waits.hang import all_met, divergence_group, group_of_end, merged, parting
from trainprobe.waits.headlines import go_on, headline, nowhere
from trainprobe.waits.launching import launcher_group, waiting_launchers, waits_s
from trainprobe.waits.live_standings import live_standings
from trainprobe.waits.printed_steps import last_step_ago_s
from trainprobe.waits.servers import is_server, listens, serves
from trainprobe.waits.situation import Situation
from trainprobe.waits.slowness import IDLE_S, SAME_RANK, rarely_seen, slow_groups
from trainprobe.waits.standings import AT_THE_STORE, Standing
from trainprobe.waits.suspects import SuspectGroup
from trainprobe.waits.unlike_ranks import unlike_ranks
from trainprobe.waits.unreached import unreached_group

SHORT_S = 2.0
"""Where nobody has waited for longer than this, everybody has moved since; between the two
bounds nobody can tell.
"""
OWN_LINE_SHARE = 0.4
"""From this share of the sampled time on, a line of the user's is worth a look."""
NEARLY_ALL = 0.9
"""Who trains computes for more than a tenth of the time."""
PROBE = "job"


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
    view = _View(facts, job, rung, ranks, watch).judged()
    view = replace(view, world_size=job.world_size or 0, running=True)
    view = _with_own_line(_earned(view, facts, job), facts)
    return _unlike(_unlaunched(view, job), facts, job)


def _with_own_line(view: Situation, facts: Facts) -> Situation:
    """Where nobody is late, a job may still be slow on all ranks alike: what it does there is said,
    though nobody here knows how long it should take.
    """
    if view.verdict not in ("healthy", "undetermined"):
        return view
    place, share, sampled_s = own_line(facts.of(Samples, cell=view.cell))
    if share < OWN_LINE_SHARE:
        return view
    says = (
        f"the main threads were at {place}, outside of torch, for {share:.0%} of the"
        f" {sampled_s:.0f} s sampled"
    )
    return replace(view, remarks=(*view.remarks, says))


def _unlike(view: Situation, facts: Facts, job: Job) -> Situation:
    """What the ranks do not share and may rightly not is said beside what ails them."""
    if view.verdict == "healthy":
        return view
    says = tuple(one.says for one in unlike_ranks(facts, job) if not one.fault)
    return replace(view, remarks=(*view.remarks, *says)) if says else view


def _earned(view: Situation, facts: Facts, job: Job) -> Situation:
    """Health is of all ranks: processes that may be any rank, and ranks of hosts that nobody
    looked at, leave it open. So does a look that was wanted and for which no time was left.
    """
    lives = all(one.ending is None for one in view.ranks)
    if job.torch is False and view.verdict in ("healthy", "undetermined") and lives:
        return replace(
            view, verdict="undetermined", conclusive=False, says=_no_training(view), next_look=""
        )
    if view.verdict != "healthy":
        return view
    unknown = [one.rank for one in view.ranks if pid_of(one.rank) is not None]
    doubts = (
        [
            (
                f"nobody knows the {'rank' if len(unknown) == 1 else 'ranks'} of "
                f"{_processes(unknown)},"
                " so one may be missing"
            )
        ]
        if unknown
        else []
    )
    if job.absent and job.elsewhere:
        doubts.append(
            f"{ranks_say(job.absent)} of {job.world_size}, on other hosts or missing,"
            " could not be looked at"
        )
    between = between_hosts(facts.of(Samples, cell=job.cell))
    if between >= NEARLY_ALL:
        doubts.append(
            f"all ranks were in collectives for at least {between:.0%} of the sampled time, so what"
            " they send each other, or the way between the hosts, may be slow"
        )
    doubts += [late.reason.partition(";")[0] for late in facts.refused("time", cell=job.cell)]
    return (
        replace(
            view,
            verdict="undetermined",
            conclusive=False,
            says=f"{view.says}; but {' and '.join(doubts)}",
        )
        if doubts
        else view
    )


def _unlaunched(view: Situation, job: Job) -> Situation:
    """Ranks that go on without their launcher are at risk: nobody would end or restart them."""
    lost = [one for one in view.ranks if one.pid in job.orphaned]
    if not lost:
        return view
    hosts = tuple(dict.fromkeys(one.host for one in lost if one.host))
    ranks = tuple(one.rank for one in lost)
    says = f"the launcher of {ranks_say(ranks)}{f' on {folded(hosts)}' if hosts else ''} is gone"
    if view.verdict != "healthy":
        return replace(view, remarks=(*view.remarks, says))
    risk = "nobody ends or restarts them when one of them fails"
    group = SuspectGroup(
        cell=view.cell,
        probe=PROBE,
        ranks=ranks,
        how="left",
        says=says,
        mode="check",
        evidence=job.evidence,
        world_size=len(view.ranks),
        hosts=hosts,
    )
    says = f"{view.says}; but {says}, and {risk}"
    return replace(view, verdict="at-risk", says=says, groups=(group,))


def _no_training(view: Situation) -> str:
    """A server, or a script before its first import: that it does not hang says nothing about a
    training.
    """
    pid = next((one.pid for one in view.ranks if one.pid), None)
    who = f"process {pid}" if pid else "this process"
    return (
        f"{who} shows no sign of a training job: it has no torch in memory, no rank and no"
        " launcher. If it has yet to import torch, attach again later; `trainprobe attach` without"
        " a pid lists the training jobs of this host"
    )


def _processes(unknown: Sequence[int]) -> str:
    pids = [str(pid_of(rank)) for rank in unknown]
    return (
        f"process{'es' if len(pids) > 1 else ''}"
        f" {', '.join(pids[:8])}{' and others' if len(pids) > 8 else ''}"
    )


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


@dataclass
class _Ends:
    """The ends of the graph by what they show; `open` are those of which nothing tells for how
    long they have lasted, `toils` those where a worker computes and all have long waited for it.
    """

    hung: list[tuple[Node, ...]] = field(default_factory=list)
    young: list[tuple[Node, ...]] = field(default_factory=list)
    open: list[tuple[Node, ...]] = field(default_factory=list)
    toils: list[tuple[Node, ...]] = field(default_factory=list)
    works: list[tuple[Node, ...]] = field(default_factory=list)


class _View:
    def __init__(
        self, facts: Facts, job: Job, rung: Rung, ranks: tuple[Standing, ...], watch: Watch
    ) -> None:
        self.facts, self.job, self.rung, self.ranks, self.watch = facts, job, rung, ranks, watch
        self.edges = Edges(facts, job.cell, ranks, watch)
        self.graph: Graph = self.edges.graph()
        self.by_node = {Node("rank", str(standing.rank)): standing for standing in ranks}

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
        ends = self._sorted_ends()
        hung = ends.hung
        serving = [end for end in hung if len(end) == 1 and self._is_server(end[0])]
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
                f"{self.edges.say(hung[0][0])} {self._activity(hung[0][0]).says or 'stands'}, but"
                f" the job printed a step {ago_s:.0f} s ago, after it had come there: so somebody"
                " goes on"
            )
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._watch())
        if hung:
            groups = self._groups([*hung, *self._at_one_rendezvous(hung, ends.young)])
            if not groups:  # the end is nobody whom the evidence makes a rank of this job
                return self._view(
                    "undetermined", "somebody is waited for who cannot be told", conclusive=False
                )
            return replace(self._view("hung", headline(groups[0], self.ranks)), groups=groups)
        return self._not_hung(ends)

    def _stepped_since(self, hung: Sequence[tuple[Node, ...]]) -> float | None:
        """For how many seconds the job has been silent since it printed a step, where that was
        after all that hang, and wait for these, had come to their places; None where it was not.
        Where all ranks wait none of them has printed it, unless nobody knows since when they do.
        """
        ago_s = last_step_ago_s(self.facts, self.job.cell)
        if ago_s is None or any(self._has_failed(node) for end in hung for node in end):
            return None
        nodes = {node for end in hung for node in (*end, *self.graph.reaches(end))}
        ages = [activity.age_s for node in nodes if (activity := self._activity(node)).says]
        known = [age for age in ages if age is not None]
        all_wait = nodes >= set(self.by_node)
        if len(known) == len(ages) and (all_wait or ago_s + HUNG_S > min(known, default=0.0)):
            return None
        return ago_s if len(known) == len(ages) or ago_s < HUNG_S else None

    def _not_hung(self, ends: _Ends) -> Situation:
        if (undecided := self._undecided(ends)) is not None:
            return undecided
        slow = slow_groups(self.facts, self.rung, self.ranks, self.watch, self._waiters(ends.works))
        if slow:
            return replace(self._view("slow", slow[0].says), groups=slow)
        if (unseen := self._unseen_to_get_on(ends.works)) is not None:
            return unseen
        view = self._healthy(ends.works)
        rare = rarely_seen(self.rung, self.ranks, self.facts.of(Samples, cell=self.job.cell))
        if view.verdict != "healthy" or not (rare or self._waiters(ends.works)):
            return view
        says = f"{view.says}; {rare.says}" if rare else view.says
        if rare is not None and rare.open:
            view = self._view("undetermined", says, conclusive=False)
            view = replace(view, groups=(rare.group,) if rare.group is not None else ())
        return replace(
            view, says=says, next_look=self._watch_steps(rare.watch if rare else SAME_RANK)
        )

    def _undecided(self, ends: _Ends) -> Situation | None:
        """What leaves open whether the job goes on; None where it does."""
        left = [standing.rank for standing in self.ranks if standing.ending is not None]
        if left:
            return self._view(
                "undetermined", f"{ranks_say(left)} ended while the others go on", conclusive=False
            )
        if ends.young:
            wait = self._at_most(ends.young[0]) or self._age(ends.young[0])
            longest = f": the longest wait is {wait:.1f} s" if wait is not None else ""
            says = (
                f"not hung so far{longest}; a hang shows after {HUNG_S:.0f} s, so attach again in"
                f" {max(1.0, HUNG_S + 1 - (wait or 0.0)):.0f} s"
            )
            if wait is not None and wait < SHORT_S:
                return self._view("healthy", says)
            view = self._view("undetermined", says, conclusive=False)
            return replace(view, next_look=self._attach())
        if ends.open:
            return self._of_unknown_age(ends.open[0])
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
        toiling = self._toiling(ends.toils[0]) if ends.toils else None
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
            waits_s = [
                self.by_node[node].since_s or 0.0
                for node in self.graph.reaches(end)
                if node in self.by_node
            ]
            pids = [pid for node in end if (pid := self._pid_of(node)) is not None]
            if max(waits_s, default=0.0) < IDLE_S or any(map(self._gets_on, pids)):
                continue
            says = (
                f"{self.edges.say(end[0])} {self._activity(end[0]).says}, and others have waited"
                f" for it for {max(waits_s):.0f} s: a long task, or a loop without an end; nothing"
                " that was looked at tells which"
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

    def _is_server(self, node: Node) -> bool:
        standing = self.by_node.get(node)
        return (
            standing is not None
            and self._activity(node).kind not in ("stopped", "blocked")
            and is_server(standing)
        )

    def _waiters(
        self, works: Sequence[tuple[Node, ...]]
    ) -> dict[int, tuple[tuple[int, ...], float]]:
        """For each working rank that others wait for: who, and the longest of their waits in
        seconds.
        """
        found = {}
        for end in works:
            victims = [
                self.by_node[node] for node in self.graph.reaches(end) if node in self.by_node
            ]
            ranks = [self.by_node[node].rank for node in end if node in self.by_node]
            if victims and len(ranks) == 1:
                found[ranks[0]] = (
                    tuple(sorted(one.rank for one in victims)),
                    max((one.since_s or 0.0 for one in victims), default=0.0),
                )
        return found

    def _sorted_ends(self) -> _Ends:
        found = _Ends()
        anybody_goes_on = any(standing.goes_on for standing in self.ranks)
        for end in self.graph.ends():
            victims = [node for node in self.graph.reaches(end) if node in self.by_node]
            if any(self._activity(node).goes_on for node in end):
                self._at_work(end, victims, found)
            elif (
                victims
                or len(end) > 1
                or self._stands_alone(end[0], anybody_goes_on=anybody_goes_on)
            ):
                self._place(end, found)
        found.hung += self._beside(found.hung) if found.hung else []
        return found

    def _at_work(self, end: tuple[Node, ...], victims: Sequence[Node], found: _Ends) -> None:
        """Sort an end that somebody works at. One loader worker that computes while all ranks
        wait for it has a long batch, or a loop without an end; who passes through a loop time after
        time without a value that moves on, while others have long waited, is in such a loop.
        """
        toiling = self._toiling(end)
        waits_s = [self.by_node[node].since_s or 0.0 for node in victims]
        pids = [self._pid_of(node) for node in end]
        if min(waits_s, default=0.0) >= IDLE_S and any(
            pid is not None and self.watch.starts_anew(pid) is not None for pid in pids
        ):
            found.hung.append(end)
            return
        if toiling is None or not waits_s or min(waits_s) < HUNG_S:
            found.works.append(end)
        elif toiling[1] and min(waits_s) >= LONG_WAIT_S:
            found.hung.append(end)
        else:
            found.toils.append(end)

    def _toiling(self, end: Sequence[Node]) -> tuple[ProcessState, bool] | None:
        """The worker that one rank of this end waits for, if all other ranks wait for that rank."""
        ranks = [node for node in end if node in self.by_node]
        others = [node for node in self.graph.reaches(end) if node in self.by_node]
        if len(ranks) + len(others) < len(self.ranks):
            return None
        pids = [self.by_node[node].pid for node in (ranks or others)]
        found = [self.watch.toiling_worker(pid) for pid in pids if pid is not None]
        return next((one for one in found if one is not None), None)

    def _place(self, end: tuple[Node, ...], found: _Ends) -> None:
        """Sort an end that nobody was seen to work at, by how long it has lasted."""
        age, most = self._age(end), self._at_most(end)
        stands = any(
            self._activity(node).kind in ("stopped", "blocked") or self._has_failed(node)
            for node in end
        )
        if stands:
            found.hung.append(end)
        elif any(self._activity(node).kind == "unclear" for node in end):
            found.open.append(end)
        elif age is not None and age >= HUNG_S:
            found.hung.append(end)
        elif (
            most is not None and most < FRESH_S and all(self._activity(node).wakes for node in end)
        ):
            found.works.append(end)
        elif most is not None and most < HUNG_S:
            found.young.append(end)
        elif age is None:
            found.hung.append(end)
        elif self._nobody_sleeps(end):
            found.open.append(end)
        else:
            found.young.append(end)

    def _has_failed(self, node: Node) -> bool:
        """Is it a rank that died? Who waits for that one waits for ever, however short the time."""
        standing = self.by_node.get(node)
        return standing is not None and standing.ending is not None and standing.ending.abnormal

    def _at_most(self, end: Sequence[Node]) -> float | None:
        """For how long this end can have lasted at most: since one of it last exchanged data
        with another rank. None where nothing tells.
        """
        bounds = [self._activity(node).at_most_s for node in end]
        return (
            max((bound for bound in bounds if bound is not None), default=None)
            if None not in bounds
            else None
        )

    def _nobody_sleeps(self, end: Sequence[Node]) -> bool:
        """Does everybody of this end, and of those that wait for it, wake by itself? Then no nap
        tells since when they wait.
        """
        activities = [self._activity(node) for node in (*end, *self.graph.reaches(end))]
        return all(
            activity.wakes
            for activity in activities
            if not activity.goes_on and activity.age_s is not None
        )

    def _of_unknown_age(self, end: Sequence[Node]) -> Situation:
        who, activity = self.edges.say(end[0]), self._activity(end[0])
        unclear = next((node for node in end if self._activity(node).kind == "unclear"), None)
        if unclear is not None:
            says = f"{self.edges.say(unclear)} {self._activity(unclear).says}"
            return replace(
                self._view("undetermined", says, conclusive=False), next_look=self._watch()
            )
        says = (
            f"{who} {activity.says or 'stands'} and wakes now and then: since when it waits for the"
            f" same cannot be told from {self._looked_s(end):.0f} s of looking"
        )
        return replace(self._view("undetermined", says, conclusive=False), next_look=self._watch())

    def _attach(self) -> str:
        return f"trainprobe attach {self.job.launcher_pid or self.ranks[0].pid or 'PID'}"

    def _watch(self) -> str:
        look = f"{self._attach()} --watch 60 --times 2"
        return f"{look}: who still stands there a minute later hangs"

    def _watch_steps(self, what: str) -> str:
        return f"{self._attach()} --watch 30 --times 4: {what}"

    def _looked_s(self, end: Sequence[Node]) -> float:
        standing = self.by_node.get(end[0])
        return (
            standing.process.looked_s or 0.0
            if standing is not None and standing.process is not None
            else 0.0
        )

    def _beside(self, hung: Sequence[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
        """Ranks that go round in the very loop in which another one hangs, though nobody waits
        for them: the loop holds them all.
        """
        places = {
            self.by_node[node].where
            for end in hung
            for node in end
            if node in self.by_node and self._activity(node).kind in ("polls", "spins")
        } - {""}
        taken = {node for end in hung for node in end}
        found: list[tuple[Node, ...]] = []
        for end in self.graph.ends():
            standing = self.by_node.get(end[0])
            if (
                len(end) == 1
                and end[0] not in taken
                and standing is not None
                and standing.where in places
                and self._activity(end[0]).kind in ("polls", "spins")
            ):
                found.append(end)
        return found

    def _stands_alone(self, node: Node, *, anybody_goes_on: bool) -> bool:
        """Is a rank for which nobody waits stuck by itself? One that sleeps, or serves whoever
        comes, is idle; beside others that work it may be.
        """
        standing = self.by_node.get(node)
        activity = self._activity(node)
        if standing is None or (standing.state == "unseen" and standing.pid is not None):
            return False
        if activity.kind in ("stopped", "blocked"):
            return True
        if anybody_goes_on or activity.kind in ("ended", "unseen"):
            return False
        if serves(standing):
            return False
        return activity.kind in ("polls", "spins") or (
            activity.kind == "still" and (activity.wakes or standing.leaf not in ("sleep", ""))
        )

    def _activity(self, node: Node) -> Activity:
        pid = self._pid_of(node)
        return self.watch.activity(pid) if pid is not None else Activity("unseen")

    def _pid_of(self, node: Node) -> int | None:
        standing = self.by_node.get(node)
        return standing.pid if standing is not None else self.edges.pid_of(node)

    def _age(self, end: Sequence[Node]) -> float | None:
        """How long the longest sleeper of this end and its victims has slept; None where
        nobody's sleep is known.

        Where all of the end wait for answers from the network, only they count: a worker may have
        asked for its fifth file while a rank waits for the whole batch.
        """
        missing = any(node in self.by_node and self.by_node[node].pid is None for node in end)
        asking = [
            node
            for node in (*end, *(self.graph.reaches(end) if missing else ()))
            if self._activity(node).condition
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
            if (activity := self._activity(node)).kind != "unseen" and not activity.goes_on
        ]
        spinning = [node for node in end if self._activity(node).kind == "spins"]
        known = [age for age in ages if age is not None]
        if spinning and len(known) == len(spinning) == len(ages):
            return None  # nobody sleeps: only the looks themselves tell
        return max(known, default=None)

    def _unanswered_s(self, node: Node) -> float | None:
        """For how long it has slept in one call that waits for an answer, or nothing has come to
        it; None for all others, also for those that ask again and again or wait to be asked.
        """
        pid, activity = self._pid_of(node) or 0, self._activity(node)
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

    def _groups(self, ends: Sequence[tuple[Node, ...]]) -> tuple[SuspectGroup, ...]:
        divergence = parting(self.facts, self.job.cell, self.ranks)
        if divergence is not None and divergence.kind != "missing" and all_met(self.ranks):
            return (divergence_group(self.rung, self.ranks, divergence),)
        found = []
        for end in ends:
            group = group_of_end(self.rung, self.ranks, self.graph, end, divergence, self.by_node)
            if group is not None:
                found.append(self._with_chain(self._said(group), end))
        return merged(self._of_one_loop(found))

    def _of_one_loop(self, groups: Sequence[SuspectGroup]) -> list[SuspectGroup]:
        """Ranks that go round in one function are met at any of its lines: they stand at one
        place, the first one's.
        """
        places: dict[str, str] = {}
        told = []
        for group in groups:
            standing = next(
                (one for one in self.ranks if len(group.ranks) == 1 and one.rank == group.ranks[0]),
                None,
            )
            if (
                standing is not None
                and standing.where
                and self._activity(Node("rank", str(standing.rank))).kind in ("polls", "spins")
            ):
                first = places.setdefault(
                    re.sub(r":\d+ in ", " in ", standing.where), standing.where
                )
                group = replace(group, says=group.says.replace(standing.where, first))  # noqa: PLW2901 # the same group, told alike
            told.append(group)
        return told

    def _with_chain(self, group: SuspectGroup, end: Sequence[Node]) -> SuspectGroup:
        start = (
            Node("rank", str((group.victims or group.ranks)[0]))
            if group.victims or group.ranks
            else None
        )
        if start is None or (group.how == "cycle" and group.chain):
            return group
        chain = self.graph.chain(start, end)
        if (
            group.victims and group.how != "cycle"
        ):  # by way of the suspects, where the shortest way would miss them
            through = self.graph.chain(start, [Node("rank", str(rank)) for rank in group.ranks])
            on = self.graph.chain(through[-1].awaited, end) if through else ()
            chain = (*through, *on) if through else chain
            last = chain[-1].awaited if chain else start
            if last.kind == "process" and last in end and len(end) > 1:  # round to where it began
                chain += self.graph.chain(last, [node for node in end if node in self.by_node])
        links = [
            Link(
                self._say(wait.waiter, group.victims),
                self._say(wait.awaited, ()),
                wait.how,
                wait.evidence,
            )
            for wait in chain
        ]
        last = chain[-1].awaited if chain else start
        activity = self._activity(last)
        if links and activity.says and last.kind in ("rank", "process"):
            links[-1] = replace(links[-1], awaited=f"{links[-1].awaited}, which {activity.says}")
        return replace(group, chain=tuple(links))

    def _say(self, node: Node, folded: Sequence[int]) -> str:
        if node.kind == "rank" and len(folded) > 1 and node.key == str(folded[0]):
            same = [rank for rank in folded if self._meets(rank) == self._meets(folded[0])]
            return ranks_say(sorted(same))
        return self.edges.say(node)

    def _meets(self, rank: int) -> tuple[str, ...]:
        return tuple(str(wait.awaited) for wait in self.graph.waits_of(Node("rank", str(rank))))

    def _said(self, group: SuspectGroup) -> SuspectGroup:
        """The group's sentence, with what /proc and the looks say of its first rank."""
        if not group.ranks:
            return group
        first = next(standing for standing in self.ranks if standing.rank == group.ranks[0])
        who, rest = ranks_say(group.ranks), " while the others wait" if group.victims else ""
        if first.state == "unseen" and first.pid is None:
            says = (
                f"{who} of {self.job.world_size or len(self.ranks)}"
                f" {'has' if len(group.ranks) == 1 else 'have'} {nowhere(self.job)}{rest}"
            )
            return replace(group, how="not-visible", says=says)
        if first.state in ("stopped", "blocked", "exited"):
            word = {"stopped": "stopped", "blocked": "blocked in the kernel", "exited": "ended"}[
                first.state
            ]
            be = (
                ("is" if first.state != "exited" else "has")
                if len(group.ranks) == 1
                else ("are" if first.state != "exited" else "have")
            )
            place = f" at {first.where}" if first.where else ""
            return replace(group, says=f"{who} {be} {word}{place}{rest}")
        if self.job.elsewhere and group.how == "stuck-inside":
            return replace(
                group,
                says=(
                    f"all ranks of {'the hosts that answered' if self.job.hosts else 'this host'}"
                    f" are inside {first.meeting} and wait there for ranks on other hosts"
                ),
            )
        return group

    def _healthy(self, works: Sequence[tuple[Node, ...]]) -> Situation:
        busy = [
            (end, [self.by_node[node] for node in self.graph.reaches(end) if node in self.by_node])
            for end in works
        ]
        waited_for = [(end, victims) for end, victims in busy if victims]
        if waited_for:
            end, victims = max(waited_for, key=lambda pair: len(pair[1]))
            waiting = sorted(standing.rank for standing in victims)
            says = (
                f"not hung: {self.edges.say(end[0])} {self._activity(end[0]).says} and"
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
            doing = self._activity(Node("rank", str(first.rank))).says or "is idle"
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
                f" {self._activity(Node('rank', str(self.ranks[0].rank))).says or 'is idle'}"
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
