"""One visit to a live job: the cheapest and safest looks first, each with a deadline."""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from trainprobe.attach.background import BackgroundLooks
from trainprobe.attach.discovery import earlier_of, members_now, members_of
from trainprobe.attach.kept_looks import KeptLooks
from trainprobe.attach.pace import Clock, Pace, at_once
from trainprobe.attach.process_ends import ROLES, Lives, is_over
from trainprobe.attach.progress_line import moves_line
from trainprobe.attach.rounds import Rounds
from trainprobe.collect.collectors.awaited import look_at_values
from trainprobe.collect.collectors.cgroup import CgroupWatch
from trainprobe.collect.collectors.lint import look_with_lint_at_stacks
from trainprobe.collect.collectors.loop_values import look_at_loop_values
from trainprobe.collect.collectors.parting_values import look_at_parting_values
from trainprobe.collect.collectors.source import Site, look_at_source, sites_in_stacks
from trainprobe.collect.look_results import record, refused
from trainprobe.collect.members import Member, host_subject
from trainprobe.collect.samples import START_S, look_at_samples
from trainprobe.collect.stacks import look_at_native_stacks
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.model.subjects import Subject
from trainprobe.stacks import asking, compiling, loading
from trainprobe.stacks.arrivals import arrivals_of, together, too_long, worth_more
from trainprobe.stacks.places import outside_torch
from trainprobe.stacks.spells import Taken, all_stacks, by_rank, frames_of
from trainprobe.stacks.stillness import FRESH_S, HUNG_S
from trainprobe.system.child import ended_from_status
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.targets.environment import environ_of

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import AttachRequest
    from trainprobe.targets.jobs import LiveJob

UNTIL_CTRL_C_S = 10 * 365 * 86400.0
USUAL_CYCLES = (700, 10, 10)  # as Python begins
MOST_SAMPLED = 8  # side by side, 8 MB each: within what lookers may take together
MOST_SAMPLED_S = 30.0  # of each pause of --watch
LAUNCHER_S = 1.0  # torchrun looks at its workers ten times a second
LAST_LOOK_S = 0.7  # what a look at some ranks takes
OOM_SCORE = "/proc/self/oom_score_adj"


def look_at_job(
    job: LiveJob,
    case: Case,
    request: AttachRequest,
    progress: Progress,
    meanwhile: Callable[[], object] = lambda: None,
    *,
    cell: str = LIVE_CELL,
    began: float | None = None,
) -> None:
    """Write all that can be seen of `job` into `case`, as `cell`. `meanwhile` is called once, in
    the pause between two looks. The time that a look may take runs from `began` (monotonic), else
    from now.

    Raises Interrupted after Ctrl-C, when what was learnt until then is in the case. With --watch,
    Ctrl-C is how it ends.
    """
    first_to_die()
    with Interruption() as interruption:
        visit = Visit(job, case, request, progress, interruption, cell, began=began)
        visit.look(meanwhile)
        if interruption.asked and not visit.watching:
            case.add("interrupted", source="signal", data={"phase": "attach", "cell": cell})
            raise Interrupted


def look_deeper(
    job: LiveJob,
    case: Case,
    progress: Progress,
    *,
    cell: str = LIVE_CELL,
    within_s: float | None = None,
) -> None:
    """Add to the case of a look what the ranks that still live write of their own calls: this runs
    code inside the job. It takes `within_s` seconds at most.

    Raises Interrupted as `look_at_job` does.
    """
    pace = Pace()
    left_s = pace.deep_s if within_s is None else min(pace.deep_s, within_s)
    if left_s <= 0:
        return
    with Interruption() as interruption:
        _look_deep(case, cell, members_now(job, members_of(job)), progress, left_s)
        if interruption.asked:
            case.add("interrupted", source="signal", data={"phase": "attach", "cell": cell})
            raise Interrupted


def _look_deep(
    case: Case, cell: str, members: Sequence[Member], progress: Progress, deadline_s: float
) -> None:
    from trainprobe.collect.deep import look_deep

    progress.note("Having each rank write its flight recorder: this runs code inside the job.")
    look_deep(case, cell, members, deadline_s=deadline_s)


def first_to_die() -> None:
    """Have the kernel end us, and what we start, before anybody of the job when memory runs out.
    Raising one's own score needs no right.
    """
    with contextlib.suppress(OSError), open(OOM_SCORE, "w", encoding="ascii") as file:
        file.write("1000")


def asked_s(request: AttachRequest, pace: Pace) -> float:
    """Return how long the looks may take that were asked for beyond the first ones.

    Those of --watch end by their number or by Ctrl-C: beside its pause each takes what the
    machine makes of it.
    """
    if request.watch_s is not None and request.times is None:
        return UNTIL_CTRL_C_S
    looks = 0 if request.watch_s is None else request.times or 0
    return (
        looks * ((request.watch_s or 0.0) + pace.whole_s)
        + request.deep * pace.deep_s
        + request.trigger_dump * pace.pipe_s
    )


@contextlib.contextmanager
def collecting_cycles() -> Iterator[None]:
    """Look for cycles as often as Python does by itself. The command line does so seldom, since one
    look makes few; each makes some 30 KiB, which hours of looks would pile up.
    """
    before = gc.get_threshold()
    gc.freeze()  # what is there stays
    gc.set_threshold(*USUAL_CYCLES)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Visit:
    """The looks at one job, with what they need to know of each other."""

    def __init__(
        self,
        job: LiveJob,
        case: Case,
        request: AttachRequest,
        progress: Progress,
        interruption: Interruption,
        cell: str = LIVE_CELL,
        *,
        began: float | None = None,
    ) -> None:
        self.job, self.case, self.request, self.progress, self.interruption, self.cell = (
            job,
            case,
            request,
            progress,
            interruption,
            cell,
        )
        self.data = {**job.as_data(), "cell": cell}
        self.members = members_of(job)
        self.pace = Pace()
        self.clock = Clock(
            request.timeout_s or self.pace.whole_s + asked_s(request, self.pace),
            kept_s=0.0 if request.timeout_s else self.pace.grace_s,
            began=began,
        )
        self.cut: dict[str, None] = {}
        self.rounds = Rounds(case, self.cell, self.pace, self.clock, at_once())
        self.rounds.elsewhere = bool(self.data.get("elsewhere"))
        self.background = BackgroundLooks(case, self.cell, self.data)
        self.cgroups = CgroupWatch(ours=False)
        self.lives = Lives()
        self.circled = False
        self.watching = (
            False  # until the first two looks are over, Ctrl-C is an interruption like any other
        )

    def look(self, meanwhile: Callable[[], object]) -> None:
        """Look twice, and on while that does not decide; other looks run beside."""
        self._learn_secrets()
        self.case.add(
            "job",
            subject=Subject("job", host=str(self.data.get("host") or "")),
            cell=self.cell,
            source="/proc",
            data=self.data,
        )
        self._endings()
        self.lives.hold(self.members)
        self.cgroups.see(member.pid for member in self.members)
        self.progress.note(f"Looking at {len(self.members)} processes.")
        began = time.monotonic()
        self._round()
        self.background.start_round("first", self.members)
        self._lint()
        self._earlier()
        self._meanwhile(meanwhile)
        self._pause(began + self.pace.between_looks_s - time.monotonic())
        if not self._hurry():
            self.background.start_round("second", self.members)
            self._round(again=True)
        if not self.request.quick:
            self._look_on(began)
            self._circling()
        self._values()
        self._native()
        self._inside()
        with collecting_cycles():
            self._watch()
        if time.monotonic() - began > FRESH_S:  # what went between the ranks since the first look
            self.background.start_round("last", self.members)
        self._who_ended()
        self.cgroups.look(self.case, self.cell, "after")
        self._say_what_was_cut()
        self.background.finish(self.clock.at_last(self.pace.grace_s))

    def _meanwhile(self, make_ready: Callable[[], object]) -> None:
        """Do it, and keep as much time for the judgement as that takes on a crowded machine."""
        began = time.monotonic()
        make_ready()
        self.clock.keep(time.monotonic() - began)

    def _learn_secrets(self) -> None:
        """Hide the secrets of the job's environment; they may not be in ours."""
        for member in self.members:
            self.case.redactor.learn(environ_of(member.pid))

    def _endings(self) -> None:
        """How ranks ended whose parent has not asked yet: the kernel keeps that for it."""
        for rank in self.job.ranks:
            if rank.wait_status is not None:
                data = to_json(ended_from_status(rank.wait_status, seen_by="proc"))
                subject = Member(rank.rank, rank.pid, "rank", rank.started_ticks).subject
                self.case.add(
                    "rank.ended",
                    subject=subject,
                    cell=self.cell,
                    source=f"/proc/{rank.pid}/stat",
                    data=data,
                )

    def _who_ended(self) -> None:
        """Record who has ended while we looked, and how."""
        if self.lives.all_ended():
            self._pause(LAUNCHER_S)  # it has yet to wait for its ranks, and to end
        self.lives.check()
        for member, ended in self.lives.endings():
            self.case.add(
                "rank.ended",
                subject=member.subject,
                cell=self.cell,
                source="pidfd",
                data=to_json(ended),
            )
        self.lives.close()

    def _round(self, *, again: bool = False) -> None:
        if again:
            self.members = members_now(self.job, self.members)
            self.lives.hold(self.members)
            self.lives.check()
        self.rounds.look(self.members)
        cwd = str(self.data.get("cwd") or "")
        # Beside the next pause: reading source is no look at the job.
        sites = sites_in_stacks(self.rounds.stacks)
        look_at_source(
            self.case, self.cell, sites, cwd=cwd, deadline_s=self.clock.at_most(self.pace.source_s)
        )

    def _look_on(self, began: float) -> None:
        """Look again where two looks leave it open who goes on, who is late, or whether a wait
        is a hang.
        """
        sampled = self._sampled()
        if not sampled and self.rounds.undecided():
            self._again(self.pace.third_look_s, "A process computes or goes on")
        for place, after_s in enumerate(self.pace.busy_s):
            if place:
                self._circling()  # the values tell more than one more look
                if self.rounds.at_gpu():
                    break
            left_s = began + after_s - time.monotonic()
            if left_s > 0 and self.rounds.busy_alone():
                self._again(left_s, "A rank computes in one place, and others wait")
            elif left_s > 0 and not sampled and self.rounds.worker_alone():
                self._again(left_s, "A loader worker computes, and all ranks wait")
        age_s = self.rounds.age_s()
        if age_s is not None:
            waited_s = age_s + time.monotonic() - began
            if age_s < self.pace.settled_s and waited_s < self.pace.settled_s:
                self._again(
                    self.pace.settled_s - waited_s, f"Nobody moves, but only for {waited_s:.1f} s"
                )
        self._outlast_start(began)
        self._outlast_pause()
        if not sampled and self._sampled():  # some moved in the end: ranks with long steps
            self._outlast_pause()

    def _outlast_start(self, began: float) -> None:
        """Look again where all ranks poll the store, as they do when a job starts."""
        left_s = HUNG_S + 0.5 - (time.monotonic() - began)
        if not self.request.watched and left_s > 0 and self.rounds.all_at_the_store():
            self._again(left_s, "All ranks wait at the store")

    def _outlast_pause(self) -> None:
        """Look again, some times, where nobody moves but may only pause for some seconds."""
        if self.request.watched:
            return
        while (slept_s := self.rounds.pausing_s()) is not None and slept_s < self.pace.pause_s:
            left_s = min(self.pace.pause_look_s, self.pace.pause_s - slept_s + 0.1)
            if not self._again(left_s, f"Nobody moves, but only for {slept_s:.1f} s"):
                return

    def _sampled(self) -> bool:
        """Sample a job that moves and look once more; say whether that was done."""
        if not self.rounds.steps() or self.rounds.alone_at_work() or self._hurry():
            return False
        self._sample()
        if not self._hurry():
            self._round(again=True)
        return True

    def _again(self, after_s: float, why: str) -> bool:
        """Look once more, `after_s` seconds from now; say whether there is time for others."""
        if self._no_time("one more look at the ranks", LAST_LOOK_S):
            return False
        last = after_s > self.clock.left_s - LAST_LOOK_S
        after_s = min(after_s, self.clock.left_s - LAST_LOOK_S)
        self.progress.note(f"{why}: one more look in {after_s:.1f} s.")
        self._pause(after_s)
        if self._no_time("one more look at the ranks"):
            return False
        self._round(again=True)
        return not last

    def _sample(self) -> None:
        """Sample the ranks of a job that moves, for as long as it takes to see whether one of them
        is steadily late.
        """
        taken: list[Taken] = []
        why = "who comes last to the collectives?"
        spans_s = [self.pace.loads_s] if self.rounds.load() else list(self.pace.samples_s)
        if self.request.watched:
            spans_s = [self.pace.samples_s[0]]
        while spans_s:
            span_s = min(spans_s.pop(0), math.floor(self.clock.left_s - START_S / 2))
            least_s = min(self.pace.samples_s)
            if self._no_time("samples of the ranks", least_s + START_S / 2):
                return
            self.progress.note(f"The ranks go on, {why}: sampling them for {span_s:g} s.")
            taken.append(self._take_samples(span_s))
            seen = together([arrivals_of(span) for span in taken])
            self._read_lines_of(seen.latest, taken[-1])
            if worth_more(seen):
                why = "one seems to be late"
                if too_long(seen) and spans_s:  # each span that begins misses a round
                    spans_s = [sum(spans_s)]
            elif loading.worth_more(by_rank(taken, loading.loads)):
                why = "all of them wait for input"
            elif loading.worth_more(by_rank(taken, asking.asks_in(all_stacks(taken)))):
                why = "all of them wait for a service"
            elif compiling.worth_more(by_rank(taken, compiling.compiles)):
                why = "one compiles"
            elif len(taken) == 1 and loading.worth_more(
                by_rank(taken, outside_torch), loading.HALF
            ):
                why = "all of them are outside of torch"
            else:
                return

    def _read_lines_of(self, rank: int | None, span: Taken) -> None:
        """Read the source where the latest rank was: no look may have met it there."""
        if rank is None or rank not in span:
            return
        stacks = frames_of(span[rank])
        look_at_source(
            self.case,
            self.cell,
            [Site(frame.file, frame.line, frame.name, rank) for stack in stacks for frame in stack],
            cwd=str(self.data.get("cwd") or ""),
            deadline_s=self.clock.at_most(self.pace.source_s),
        )

    def _take_samples(self, span_s: float) -> Taken:
        """Sample all ranks; return what was recorded of those that have a number."""
        ranks = [member for member in self.members if member.role == "rank"]
        looked = look_at_samples(
            self.case,
            self.cell,
            ranks[:MOST_SAMPLED],
            span_s,
            self._hurry,
            start_s=min(START_S, max(0.0, self.clock.left_s - span_s)),
        )
        return {
            member.rank: one.data
            for member, one in zip(ranks, looked)
            if member.rank is not None and one.outcome == "ok"
        }

    def _lint(self) -> None:
        """Have lint read the files in which the ranks stand, in the background."""
        look = partial(
            look_with_lint_at_stacks,
            self.case,
            self.cell,
            sites_in_stacks(self.rounds.stacks),
            cwd=str(self.data.get("cwd") or ""),
            began=self.job.began,
            deadline_s=self.clock.at_most(self.pace.lint_s),
        )
        self.background.start("lint", look)

    def _earlier(self) -> None:
        """Look once at the survivors of each earlier elastic attempt, each in its own cell."""
        for attempt, members in earlier_of(self.job).items():
            if not self._hurry():
                Rounds(
                    self.case, f"{self.cell}#attempt{attempt}", self.pace, self.clock, at_once()
                ).look(members)

    def _native(self) -> None:
        """Take C frames, one at a time, of frozen ranks that Python frames do not explain."""
        for member in self.rounds.native_suspects():
            if self._no_time(f"the C frames of process {member.pid}"):
                return
            self.progress.note(
                f"Looking at the C frames of process {member.pid}, which pauses it for some tenths"
                " of a second."
            )
            look_at_native_stacks(
                self.case,
                self.cell,
                member,
                self.rounds.number,
                deadline_s=self.clock.at_most(self.pace.native_s),
            )

    def _circling(self) -> None:
        """Read the values of one or two that work alone again and again: do they get anywhere?"""
        if self.circled:
            return
        working = self.rounds.alone_at_work()
        self.circled = bool(working)
        for member in working:
            if self._no_time(
                "the values by which one that works alone gets on", self.pace.values_s
            ):
                return
            self.progress.note(
                f"Process {member.pid} runs at one place: reading its values for"
                f" {self.pace.circling_s / len(working):g} s."
            )
            look_at_loop_values(
                self.case,
                self.cell,
                member,
                span_s=self.pace.circling_s / len(working),
                deadline_s=self.clock.at_most(self.pace.circling_at_most_s),
            )

    def _values(self) -> None:
        """Ask for values: one or two suspects, in loops of their own, for the names in their
        waiting lines; ranks that make a process group for its number and size; and ranks that
        all wait for each other for their counters and flags.
        """
        rounds = self.rounds
        for waiting in (*rounds.own_waits(), *rounds.compilations(), *rounds.groups_made()):
            if self._no_time("the values for which a rank waits"):
                return
            look_at_values(
                self.case,
                self.cell,
                waiting,
                cwd=str(self.data.get("cwd") or ""),
                deadline_s=self.clock.at_most(self.pace.values_s),
            )
        parted, names = rounds.parted()
        if parted and names and not self._no_time("the values by which the ranks have parted"):
            look_at_parting_values(
                self.case,
                self.cell,
                parted,
                names,
                deadline_s=self.clock.at_most(self.pace.values_s),
                at_once=self.rounds.at_once,
            )

    def _inside(self) -> None:
        """Run what executes code inside the job, only where the user asked for it."""
        if self.request.trigger_dump and not self._hurry():
            from trainprobe.collect.trigger_dump import trigger_dump

            self.progress.note(
                "Asking the job for its flight-recorder dumps, through its own pipe."
            )
            trigger_dump(
                self.case,
                self.cell,
                self.members,
                self.data.get("environment") or {},
                deadline_s=self.clock.at_most(self.pace.pipe_s),
            )
        if self.request.deep and not self._hurry():
            deadline_s = self.clock.at_most(self.pace.deep_s)
            _look_deep(self.case, self.cell, self.members, self.progress, deadline_s)

    def _watch(self) -> None:
        if self.request.watch_s is None:
            return
        self.watching = not self.interruption.asked
        taken, kept = 1, KeptLooks(self.case, self.cell)
        while not self._hurry():
            self.progress.note(
                f"{time.strftime('%H:%M:%S')}"
                f" {moves_line(taken, self.rounds.ranks, self.lives.ended)}"
            )
            if self.request.times is not None and taken >= self.request.times:
                break
            ends = time.monotonic() + self.request.watch_s
            if self.rounds.steps() and self.request.watch_s >= self.pace.samples_s[0]:
                self._take_samples(min(self.request.watch_s, MOST_SAMPLED_S))
            self._pause(ends - time.monotonic())
            if not self._hurry():
                ended = [each for each in self.members if each.role not in ROLES and is_over(each)]
                self._round(again=True)
                kept.add(self.rounds.number)
                self._shorten(kept, ended)
            taken += 1
        kept.forget()
        if self.lives.over():
            self.progress.note(f"{time.strftime('%H:%M:%S')} the job has ended")

    def _shorten(self, kept: KeptLooks, ended: Sequence[Member]) -> None:
        """Look no more at those that had ended before this look: each epoch has its own loader
        workers. Ranks and launchers stay.
        """
        self.members = [member for member in self.members if member not in ended]
        self.rounds.shorten(ended)
        kept.lose(ended)

    def _no_time(self, for_what: str, needs_s: float = 0.0) -> bool:
        """Say whether there is no time left for a look that was wanted, and keep that in mind."""
        if self._hurry() or self.clock.left_s <= needs_s:
            if not self.lives.over() and not self.interruption.asked:
                self.cut.setdefault(for_what)
            return True
        return False

    def _say_what_was_cut(self) -> None:
        if self.cut:
            reason = (
                f"the {self.clock.whole_s:.0f} s for a look were over before"
                f" {' and '.join(self.cut)}; --timeout S sets another limit"
            )
            late = refused("timed_out", reason)
            record(self.case, "time", late, subject=host_subject(), cell=self.cell)

    def _hurry(self) -> bool:
        """Say whether there is no time for another look, or nobody left to look at."""
        return self.lives.over() or self.interruption.asked or self.clock.left_s <= 0

    def _pause(self, pause_s: float) -> None:
        ends = time.monotonic() + min(pause_s, self.clock.left_s)
        while (left_s := ends - time.monotonic()) > 0 and not self._hurry():
            time.sleep(min(0.02, left_s))
