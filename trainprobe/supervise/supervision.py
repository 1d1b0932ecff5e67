"""Watch one command until it ends: pass signals on, sample its ranks, have it looked at."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.attach.process_ends import Lives
from trainprobe.collect.members import Member
from trainprobe.errors import UsageError
from trainprobe.model.evidence import Ended
from trainprobe.supervise.activity import RankActivity
from trainprobe.supervise.looks import Look, Looking
from trainprobe.supervise.metrics_file import EVERY_S, write_metrics
from trainprobe.supervise.pace_looks import PaceLooks
from trainprobe.supervise.pace_watch import PaceWatch
from trainprobe.supervise.rhythm import Rhythm, Suspicion
from trainprobe.supervise.suspicions import Answer, Suspicions
from trainprobe.supervise.watched import Watched
from trainprobe.system.child import signal_name
from trainprobe.system.foreground import Foreground, stop_ourselves
from trainprobe.system.signal_relay import ENDING, SignalRelay
from trainprobe.targets.jobs import job_of

if TYPE_CHECKING:
    from trainprobe.model.request import RunRequest
    from trainprobe.supervise.heartbeats import Heartbeats
    from trainprobe.supervise.journal import RunFolder

SAMPLE_S = 0.5
# A sample that is so late tells more of us than of the job.
LATE_S = 8.0
# The process table is read so long after the start, and then so often: 20 ms each time.
FIRST_S, SLOWEST_S, KNOWN_S = 1.0, 10.0, 60.0
# From the request to end to the end that nobody can refuse: torchrun gives its ranks 30 s.
GRACE_S = 40.0
GOES_ON_S = 3.0
ASKED_TIMES = 6  # how a rank ended: three seconds, each time with a pass over /proc
NEXT_S = 0.6  # a pause that began so much later is another one
CALM_S = 2.0  # after a look, until steps are as long as they were


@dataclass(frozen=True)
class Listeners:
    """Whom to tell: one sentence; one about the first rank to die; a look that alarms, with the
    word for it and for how long the job has stood still; and that the job goes on after that.
    """

    say: Callable[[str], object]
    death: Callable[[str], object]
    alarm: Callable[[str, Look, float], None]
    goes_on: Callable[[float], None]


class Supervision:
    """The watch over one command, in one thread; looks have their own."""

    def __init__(
        self,
        request: RunRequest,
        command: Foreground,
        relay: SignalRelay,
        folder: RunFolder,
        tell: Listeners,
        heartbeats: Heartbeats,
    ) -> None:
        self._request, self._command, self._relay = request, command, relay
        self._folder, self._tell = folder, tell
        self.seen = Watched()
        self._rhythm = Rhythm()
        self._suspicions = Suspicions(sure=request.on_hang != "report")
        self._ranks: dict[tuple[int, int], RankActivity] = {}
        self._lives = Lives()
        self._told_deaths: set[Member] = set()
        self._unknown: dict[Member, int] = {}
        self._slow: set[str] = set()
        self._looking: Looking | None = None
        self._held: Look | None = None
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._next_search = time.monotonic() + FIRST_S
        self._search_s = FIRST_S
        self._kill_at: float | None = None
        self._working_since: float | None = None
        self._job_cpu_s = 0.0
        self._pace = PaceWatch(heartbeats, self._rank_of)
        self._began_working: float | None = None
        self._pace_looks = PaceLooks()
        self._asked_pace = False
        self._newest: dict[int, tuple[int, int]] = {}
        self._looked_until = 0.0
        self._next_metrics = time.monotonic()

    def watch(self) -> Watched:
        """Return when the command has ended."""
        last = next_sample = time.monotonic()
        while self._command.ended is None:
            self._command.wait(next_sample - time.monotonic(), self._relay.fileno(), self._woken)
            self._pass_signals_on()
            now = time.monotonic()
            if now >= next_sample:
                if now - last > SAMPLE_S + LATE_S:
                    self._rhythm.forget_pause(now)
                self._each_half_second(now)
                last, next_sample = now, now + SAMPLE_S
            self._take_look()
        self._ended()
        return self.seen

    def _pass_signals_on(self) -> None:
        for number, alone in self._relay.arrived():
            if number in ENDING:
                self.seen.asked_to_end = True
                self._folder.note("signal", signal=signal_name(number), passed_on=alone)
            if alone:
                self._command.send(number)
            if number == signal.SIGTSTP:
                stop_ourselves()
                self._rhythm.forget_pause(time.monotonic())

    def _each_half_second(self, now: float) -> None:
        if now >= self._next_search and self._request.watches:
            self._search(now)
        self._sample(now)
        self._tell_deaths()
        if self._kill_at is not None:
            if now >= self._kill_at:
                self._end_all()
        elif self.seen.job is not None:
            self._see_whether_it_is_due(now)
        if self._request.metrics and now >= self._next_metrics:
            self._next_metrics = now + EVERY_S
            self._write_metrics(now)

    def _see_whether_it_is_due(self, now: float) -> None:
        """A look, or the alarm that a look has said is due if nobody moves."""
        if self._held is not None and self._suspicions.outlasted(now, self._rhythm.quiet):
            look, self._held = self._held, None
            self._folder.note("outlasted", case=os.path.basename(look.case), says=look.says)
            self._tell_stall("hung", look, now)
            return
        if self._looking is not None and not self._asked_pace:
            return
        suspicion = self._suspicion(now)
        if not self._suspicions.due(suspicion, now, self._job_cpu_s):
            if self._looking is None:
                self._watch_pace(now)
        elif self._looking is None:
            self._look(suspicion)
        else:  # a stall is more urgent than the pace; the look at that comes another time
            self._looking.given_up = True

    def _suspicion(self, now: float) -> Suspicion | None:
        suspicion = self._pace.suspicion(now)
        if suspicion is None and not self._pace.steady(now):
            suspicion = self._rhythm.suspicion(now)
        return suspicion

    def _is_over(self, now: float) -> bool:
        """Is the pause over because of which a look was made? Another may have begun."""
        suspicion = self._suspicion(now)
        return suspicion is None or suspicion.since > self._suspicions.since + NEXT_S

    def _watch_pace(self, now: float) -> None:
        """Tell what the steps say, and now and then look at a job that goes on: it may crawl."""
        for finding in self._pace.findings():
            self._pace_looks.want()  # why, a look may tell
            self._folder.note("pace", says=finding.says, ranks=list(finding.ranks))
            if self._request.on_slow == "report":
                report = {
                    "verdict": "slow",
                    "says": finding.says,
                    "suspects": [{"ranks": list(finding.ranks)}],
                }
                self._tell.alarm("slow", Look("slow", says=finding.says, report=report), 0.0)
        if (
            self._request.on_slow == "report"
            and self._rhythm.works()
            and self._pace_looks.due(self._pace.times.ended, self._goes_on_s(now))
        ):
            self._pace_looks.begun()
            self._look(None)

    def _goes_on_s(self, now: float) -> float:
        return now - self._began_working if self._began_working is not None else 0.0

    def _write_metrics(self, now: float) -> None:
        import resource

        use = resource.getrusage(resource.RUSAGE_SELF)
        stalled = self._suspicions.alarmed and self._command.ended is None
        median_s, late = self._pace.times.median_s(), self._pace.times.straggler()
        write_metrics(
            self._request.metrics,
            {
                "run_up": [({}, self._command.ended is None)],
                "run_ranks": [({}, len(self._ranks))],
                "run_stalled": [({}, stalled)],
                "run_stalled_seconds": [({}, now - self._suspicions.since if stalled else 0.0)],
                "run_alarms_total": [({}, self.seen.alarms)],
                "run_looks_total": [({}, self.seen.looks)],
                "run_looks_cpu_seconds_total": [({}, self.seen.looks_cpu_s)],
                "run_cpu_seconds_total": [({}, use.ru_utime + use.ru_stime)],
                "run_step": [
                    ({"rank": str(self._name_of(pid))}, step)
                    for pid, step in sorted(self._pace.times.newest.items())
                ],
                "run_step_seconds": [({}, median_s)] if median_s is not None else [],
                "run_straggler_late_seconds": [
                    ({"rank": str(self._name_of(late.rank))}, late.late_s)
                ]
                if late is not None
                else [],
                "run_update_timestamp_seconds": [({}, time.time())],
            },
        )

    def _name_of(self, pid: int) -> int:
        """The number of a rank, else its pid."""
        rank = self._rank_of(pid)
        return rank if rank is not None else pid

    def _rank_of(self, pid: int) -> int | None:
        ranks = self.seen.job.ranks if self.seen.job is not None else ()
        found = next((rank.rank for rank in ranks if rank.pid == pid), None)
        return found if found is not None else self._pace.said_rank(pid)

    def _search(self, now: float) -> None:
        """Find the ranks, again from time to time: a launcher starts new ones."""
        self._search_s = min(SLOWEST_S, self._search_s * 1.5)
        self._next_search = now + self._search_s
        try:
            job = job_of(self._command.pid)
        except UsageError:  # not yet, or no training at all
            return
        alone = len(job.ranks) == 1 and job.ranks[0].rank_source in ("", "only-process")
        if not job.ranks or (alone and job.torch is False):
            return
        self.seen.job = job
        if len(job.ranks) >= (job.world_size or 1) - len(job.absent):
            self._next_search = now + KNOWN_S
        known = {(rank.pid, rank.started_ticks): rank for rank in job.ranks}
        for key in set(self._ranks) - set(known):
            self._forget(key)
        for key in known:
            if key not in self._ranks:
                self._ranks[key] = RankActivity(*key)
        self._lives.hold(
            [
                Member(member.rank, member.pid, member.role, member.started_ticks)
                for member in job.members()
                if member.role in ("rank", "launcher")
            ]
        )

    def _sample(self, now: float) -> None:
        works: dict[int, bool] = {}
        wrote = 0
        looked_at = self._looking is not None and not self._asked_pace
        for key, rank in list(self._ranks.items()):
            sample = rank.sample(now, looked_at=looked_at)
            if sample is None:
                self._forget(key)
                self._next_search = min(self._next_search, now + 2 * SAMPLE_S)
                continue
            works[rank.pid] = sample.works
            wrote += sample.wrote
            self._job_cpu_s += sample.share * SAMPLE_S
        self._read_steps(now)
        self._rhythm.note(now, works, wrote)
        if works and all(works.values()):
            self._began_working = now if self._began_working is None else self._began_working
        self._see_whether_it_goes_on(now)

    def _read_steps(self, now: float) -> None:
        known = len(self._pace.pids)
        looked = self._looking is not None or now - self._looked_until < CALM_S
        busy_s = {rank.pid: rank.busy_s for rank in self._ranks.values()}
        self._pace.read(disturbed=looked, at=now, busy_s=busy_s)
        if len(self._pace.pids) > known:  # they are there: no need to wait for the next search
            self._next_search = min(self._next_search, now + SAMPLE_S)
        for pid, step in self._pace.times.newest.items():
            self._newest[pid] = (self._name_of(pid), step)  # some get their number later
        self.seen.steps = {str(name): step for name, step in self._newest.values()}

    def _forget(self, key: tuple[int, int]) -> None:
        self._ranks.pop(key).close()
        self._pace.forget(key[0])

    def _see_whether_it_goes_on(self, now: float) -> None:
        steps = self._pace.times.median_s() is None or self._pace.steady(now)
        if not (self._suspicions.alarmed and self._ranks and self._rhythm.works() and steps):
            self._working_since = None
            return
        self._working_since = self._working_since if self._working_since is not None else now
        if now - self._working_since >= GOES_ON_S:
            stood_s = self._working_since - self._suspicions.since
            self._suspicions = Suspicions(sure=self._request.on_hang != "report")
            self._folder.note("goes-on", stood_s=round(stood_s, 1))
            self._tell.goes_on(stood_s)

    def _tell_deaths(self) -> None:
        """Say at once who has died: the launcher ends the others soon, and then says so much."""
        if len(self._lives.ended) == len(self._told_deaths):
            return
        for member, ended in self._lives.endings():
            if member in self._told_deaths:
                continue
            if ended.seen_by == "nobody":  # its parent has yet to wait for it, or an old kernel
                self._unknown[member] = self._unknown.get(member, 0) + 1
                if self._unknown[member] < ASKED_TIMES:
                    continue
            self._told_deaths.add(member)
            bad = ended.how == "signalled" or bool(ended.code)
            how = signal_name(ended.signal) if ended.signal else f"exit code {ended.code}"
            how = "nobody knows what" if ended.seen_by == "nobody" else how
            self._folder.note("ended", role=member.role, rank=member.rank, pid=member.pid, how=how)
            quiet = self.seen.asked_to_end or self.seen.policy or member.role != "rank"
            if bad and not quiet and not any(self._was_bad(one) for one in self.seen.endings):
                name = f"rank {member.rank}" if member.rank is not None else "a rank"
                self._tell.death(f"{name} (pid {member.pid}) is the first to die, by {how}.")
            self.seen.endings.append((member, ended))

    @staticmethod
    def _was_bad(one: tuple[Member, Ended]) -> bool:
        return one[0].role == "rank" and (one[1].how == "signalled" or bool(one[1].code))

    def _look(self, suspicion: Suspicion | None) -> None:
        case = self._folder.next_look()
        self._asked_pace = suspicion is None
        self._folder.note(
            "look",
            because=suspicion.kind if suspicion is not None else "pace",
            quiet_s=round(time.monotonic() - suspicion.since, 1) if suspicion else 0.0,
            case=os.path.basename(case),
        )
        self._looking = Looking(
            self._command.pid,
            case,
            watched=suspicion is not None,
            ended=lambda: self._command.ended is not None,
            finished=lambda: os.write(self._wake, b"."),
        )

    def _take_look(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the thread says that it has done, and wakes us
            os.read(self._woken, 64)
        looking = self._looking
        if looking is None or looking.done is None:
            return
        self._looking, look, now = None, looking.done, time.monotonic()
        self._looked_until = now
        self.seen.looks += 1
        self.seen.looks_cpu_s += look.cpu_s
        answer: Answer = "slow" if look.verdict == "slow" else "patience"
        if self._asked_pace:
            answered = look.verdict not in ("", "undetermined")
            self._pace_looks.ended(self._pace.times.ended, self._goes_on_s(now), answered=answered)
        else:
            answer = self._suspicions.answered(
                look.verdict,
                now,
                conclusive=look.conclusive,
                cpu_s=look.cpu_s,
                works=look.works,
                open_s=look.open_s,
                own_waits={rank.pid for rank in self._ranks.values()} & set(look.own_waits),
                quiet=self._rhythm.quiet,
                over=self._is_over(now),
            )
        self._folder.note(
            "looked",
            case=os.path.basename(look.case),
            verdict=look.verdict,
            conclusive=look.conclusive,
            says=look.says or look.text[-500:],
            means=answer,
            took_s=round(look.took_s, 1),
            cpu_s=round(look.cpu_s, 2),
        )
        told = answer in ("hung", "unseen") or (answer == "slow" and self._is_news(look))
        self._folder.look_made(look.case, keep=told)
        self._held = look if answer == "held" else None
        if told:
            self._tell_stall(answer, look, now)

    def _tell_stall(self, answer: Answer, look: Look, now: float) -> None:
        self._folder.look_made(look.case, keep=True)
        if self._command.ended is not None:
            return
        self.seen.alarms += answer != "slow"
        self._tell.alarm(answer, look, now - self._suspicions.since)
        if answer == "hung" and self._request.on_hang != "report":
            self._end_by_policy(self._request.on_hang)

    def _is_news(self, look: Look) -> bool:
        """Tell of the same slow ranks once."""
        suspects = look.report.get("suspects") or [{}]
        who = str(suspects[0].get("ranks"))
        if self._request.on_slow != "report" or who in self._slow:
            return False
        self._slow.add(who)
        return True

    def _end_by_policy(self, policy: str) -> None:
        self.seen.policy = policy
        self._folder.note("ending", policy=policy)
        self._tell.say(f"--on-hang={policy}: the job is asked to end, and killed in {GRACE_S:g} s.")
        self._command.send(signal.SIGTERM)
        self._command.send(signal.SIGCONT)
        self._kill_at = time.monotonic() + GRACE_S

    def _end_all(self) -> None:
        self._command.send(signal.SIGKILL)
        self._command.kill_all()

    def _ended(self) -> None:
        if self._looking is not None:
            self._looking.join(2.0)
        if self.seen.policy:
            self._command.kill_all()
        self._read_steps(time.monotonic())
        self._lives.check()
        told = {member for member, _ in self.seen.endings}
        self.seen.endings += [one for one in self._lives.endings() if one[0] not in told]
        self._lives.close()
        for rank in self._ranks.values():
            rank.close()
        if self._request.metrics:
            self._write_metrics(time.monotonic())
