"""The right half of the picture: evidence in, diagnosis out. Pure, total and repeatable: it
never touches the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.causes.cause import Cause
from trainprobe.causes.linted import lint_notices
from trainprobe.causes.phrases import at_its_host
from trainprobe.causes.priors import Priors
from trainprobe.facts import (
    Facts,
    FlightDump,
    HostCheck,
    Interrupted,
    Job,
    JobRank,
    MainThread,
    Plan,
    Reach,
    Rung,
)
from trainprobe.facts.sbatch_plan import told_of_script
from trainprobe.model.diagnosis import (
    Cascade,
    Diagnosis,
    LadderRow,
    Notice,
    PlacedCause,
    RankRow,
    StackClass,
    Stacks,
    Suspect,
    Undecided,
    Verdict,
    World,
)
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import fold_ranks
from trainprobe.model.unnumbered import by_pid, pid_of
from trainprobe.ranking import RankedGroup, rank_group
from trainprobe.stacks.folding import tree_of
from trainprobe.stacks.frames import Frame
from trainprobe.waits import (
    LiveView,
    LoggedView,
    SuspectGroup,
    failing_rungs,
    is_hung,
    live_views,
    logged_views,
    outgrown_rungs,
    standings,
    suspect_groups,
)
from trainprobe.waits.climb_result import climb_of
from trainprobe.waits.data_timeouts import wait_expected
from trainprobe.waits.deadlines import advice, expiries, killing
from trainprobe.waits.divergence import claims_say, ranks_say
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.log_verdicts import ordered_groups
from trainprobe.waits.model_stress import told_of, told_of_row
from trainprobe.waits.open_questions import applies_not, as_given, doubts, outgrown, unanswered
from trainprobe.waits.predicted_limits import foreseen_groups, predictions
from trainprobe.waits.process_groups import other_groups, worst_first
from trainprobe.waits.readiness import (
    doubts_of,
    is_readiness,
    of_rungs,
    ready_groups,
    ready_verdict,
)
from trainprobe.waits.readiness_report import readiness, ready_notices, ready_says
from trainprobe.waits.timeline import echoes_said, logged_extra

# What is done only when asked for by name (`--deep`, `--trigger-dump`, `--env FILE`, PATH).
ASKED_FOR = ("deep", "trigger_dump", "node.look", "given", "input")
# Below this confidence one more look by name is worth its while.
SURE = 0.9
# Nobody reads more troubles than these, and weighing one takes time that grows with the world.
_MOST_GROUPS = 16
# Causes that say, with what ends it, all that a warning of the same would say.
_TELLS = {
    "leftover-processes": "host.leftovers",
    "accidental-data-parallel": "script.data-parallel",
}
_MODE_ORDER = {"hang": 0, "crash": 0, "slow": 1, "check": 2}


def judge(
    facts: Facts, causes: Sequence[Cause], priors: Priors, notes: Iterable[str] = ()
) -> Diagnosis:
    """Give the verdict by rule, then name the causes. `notes` are sentences that the reader must
    see (a plugin that failed to load).
    """
    views = worst_first(live_views(facts))
    logged = logged_views(facts)
    if logged and not _dumps_decide(views, logged[0]):
        views = ()  # what the logs tell first of is what the dumps show the rest of
    else:
        logged = () if views or facts.of(Rung) else logged
    found = (
        list(ordered_groups(logged))
        if logged
        else sorted(suspect_groups(facts, views), key=lambda group: _MODE_ORDER[group.mode])
    )
    ready = is_readiness(facts)
    found = [*ready_groups(facts), *of_rungs(facts, found)] if ready else found
    foreseen = predictions(facts)
    if not ready and all(
        group.mode == "check" for group in found
    ):  # what has failed already comes before what will
        ahead = foreseen_groups(facts, foreseen)
        grown = {
            group.cell for group in ahead if group.how == "slow"
        }  # a size that did not end is one of its points
        found = [
            group
            for group in found
            if group.cell not in grown or not wait_expected(facts, group.cell)
        ] + list(ahead)
    groups = found[:_MOST_GROUPS]
    notes = (
        *notes,
        *(
            (f"{len(found) - len(groups)} more groups of suspects were found and not weighed.",)
            if len(found) > len(groups)
            else ()
        ),
    )
    ranked = [rank_group(facts, group, causes, priors) for group in groups]
    if logged and logged[0].tentative:
        groups, ranked, logged = _settled(logged, groups, ranked)
    placed = _in_order(ranked)
    live = views[0] if views else None
    # of files that a job left there is nothing to kill
    running = live if live is not None and not only_dumps(live.job) else None
    ends = expiries(facts, running) if running is not None else ()
    cost = killing(facts, running) if running is not None else None
    verdict = (
        live.verdict
        if live is not None
        else (
            logged[0].verdict
            if logged
            else ready_verdict(facts, groups)
            if ready
            else verdict_of(facts, groups)
        )
    )
    says = (
        live.says
        if live is not None
        else (
            (groups[0] if groups else logged[0]).says
            if logged
            else _headline(facts, verdict, groups, placed)
        )
    )
    conclusive = _conclusive(facts, verdict) and (live is None or live.conclusive)
    found_all = Diagnosis(
        verdict=verdict,
        conclusive=conclusive,
        says=_sentence(says),
        world=(
            _live_world(live)
            if live is not None
            else _logged_world(logged[0])
            if logged
            else _world(facts, groups)
        ),
        suspects=tuple(
            Suspect(
                group.ranks, group.hosts, group.how, _sentence(group.says), extra=told_of(group)
            )
            for group in groups
        ),
        causes=placed,
        cascade=_logged_cascade(logged, ranked, placed) if logged else _cascade(ranked, placed),
        unexplained=(
            *_unexplained(facts),
            *map(_sentence, other_groups(views)),
            *(_earlier_attempts(logged)),
            *notes,
        ),
        ruled_out=_unique(
            [
                row
                for group in ranked
                for row in group.ruled_out
                if row.id not in {cause.id for cause in placed}
            ]
        ),
        undecided=_unique(
            [
                *(row for group in ranked for row in group.undecided),
                *_could_not_look(
                    facts, ranked, live_undecided=live is not None and verdict == "undetermined"
                ),
                *(
                    _left_open(facts)
                    if not ready
                    else (Undecided("cannot-look", says) for says in doubts_of(facts))
                ),
                *_deep_would_settle(facts, ranked),
                *_next_look(live, placed),
            ]
        ),
        ladder=tuple(_row(rung, facts) for rung in facts.of(Rung)),
        stacks=_stack_classes(facts, groups, live),
        warnings=_warnings(facts, placed),
        expiry=ends,
        killing=cost,
        advice=advice(running, ends, cost) if running is not None and cost is not None else "",
        climb=climb_of(facts, placed),
        predictions=foreseen,
        extra=_extra(facts, live.job if live is not None else None)
        | (logged_extra(facts, logged) if logged else {})
        | ({"readiness": readiness(facts, groups, verdict, conclusive=conclusive)} if ready else {})
        | told_of_script(facts),
    )
    return (
        _unnumbered_by_pid(found_all)
        if any(pid_of(one.rank) is not None for one in facts.of(JobRank))
        else found_all
    )


def _unnumbered_by_pid(found: Diagnosis) -> Diagnosis:
    """Processes without a known rank are named by their pids."""
    pids = [
        tuple(pid for rank in cause.ranks for pid in [pid_of(rank)] if pid is not None)
        for cause in found.causes
    ]
    causes = tuple(
        replace(cause, pids=tuple(dict.fromkeys((*cause.pids, *more))))
        for cause, more in zip(found.causes, pids, strict=True)
    )
    return by_pid(replace(found, causes=causes))


def _warnings(facts: Facts, placed: Sequence[PlacedCause]) -> tuple[Notice, ...]:
    """What is worth a word beside the causes; a cause that is named has said it better."""
    told = {_TELLS[cause.id] for cause in placed if cause.named and cause.id in _TELLS}
    if is_readiness(facts):
        return ready_notices(facts)
    alike: dict[tuple[str, str, str], list[HostCheck]] = {}
    for check in facts.of(HostCheck):
        if check.status == "warn" and check.name not in told:
            alike.setdefault((check.name, check.says, check.fix), []).append(check)
    nodes = next((plan.nodes for plan in facts.of(Plan)), ())
    rows = tuple(
        Notice(name, f"{_on(found, nodes)}{says}", fix, found[0].cell)
        for (name, says, fix), found in alike.items()
    )
    chosen = tuple(
        Notice("python", one.interpreter_note, "Name the job's with --python PATH.")
        for one in facts.of(Plan)
        if one.interpreter_note
    )
    return (*chosen, *rows, *lint_notices(facts, placed))


def _on(found: Sequence[HostCheck], nodes: Sequence[str]) -> str:
    """`node[1-2]: ` where only some of several nodes say so."""
    hosts = tuple(dict.fromkeys(check.host for check in found if check.host))
    return f"{folded(hosts)}: " if 0 < len(hosts) < len(nodes) else ""


def _dumps_decide(views: Sequence[LiveView], logged: LoggedView) -> bool:
    """Beside logs that name no first failure, dumps say more: they know every rank's last call."""
    return bool(views) and not logged.origins and bool(views[0].groups)


def _settled(
    logged: Sequence[LoggedView], groups: Sequence[SuspectGroup], ranked: Sequence[RankedGroup]
) -> tuple[list[SuspectGroup], list[RankedGroup], tuple[LoggedView, ...]]:
    """A log that stops without a failure: its last lines count where they name a cause, and then
    they told of a failure or of a wait.
    """
    last = logged[0]
    if not ranked or not ranked[0].named:
        return [], [], (replace(last, groups=()), *logged[1:])
    mode = groups[0].mode
    if mode == "hang":  # where it stopped is known, and not whether it would have gone on
        return list(groups), list(ranked), tuple(logged)
    verdict: Verdict = "crashed" if mode == "crash" else "slow" if mode == "slow" else "at-risk"
    says = f"{ranked[0].placed[0].title}: {last.says[:1].lower()}{last.says[1:]}"
    return (
        [replace(groups[0], says=says), *groups[1:]],
        list(ranked),
        (replace(last, verdict=verdict, conclusive=True), *logged[1:]),
    )


def _logged_world(logged: LoggedView) -> World:
    return World(size=logged.job.world_size or len(logged.rows), ranks=logged.rows)


def _logged_cascade(
    logged: Sequence[LoggedView], ranked: Sequence[RankedGroup], placed: Sequence[PlacedCause]
) -> tuple[Cascade, ...]:
    """Each kind of echo in one row, tied to the group of its attempt."""
    rows = []
    for view in logged:
        index = next(
            (number for number, one in enumerate(ranked) if one.group.cell == view.job.cell), None
        )
        place = next(
            (
                number
                for number, cause in enumerate(placed)
                if index is not None and cause.group == index
            ),
            None,
        )
        if place is not None:
            rows += [Cascade(ranks, _sentence(says), place) for ranks, says in echoes_said(view)]
    return tuple(rows)


def _earlier_attempts(logged: Sequence[LoggedView]) -> tuple[str, ...]:
    """What earlier attempts died of, where the last one is well and so no group tells of it."""
    if not logged or logged[0].groups:
        return ()
    return tuple(
        _sentence(f"an earlier attempt ({view.job.cell}) failed: {view.says}")
        for view in logged[1:]
        if view.groups
    )


def _live_world(live: LiveView) -> World:
    rows = [
        RankRow(
            one.rank,
            one.host,
            one.pid,
            one.state,
            one.where,
            live.waits_for.get(one.rank, ""),
            one.since_s,
        )
        for one in live.ranks
    ]
    return World(size=live.job.world_size or len(rows), ranks=tuple(rows))


def _world_says(job: Job) -> str:
    """`world complete`, or which ranks are not here."""
    if not job.world_size:
        return "world size unknown"
    if not job.absent:
        return "world complete"
    return (
        f"{ranks_say(job.absent)} of {job.world_size}"
        f" {'on other hosts or missing' if job.elsewhere else 'missing'}"
    )


def _extra(facts: Facts, job: Job | None) -> dict[str, object]:
    plan = facts.one(Plan)
    extra: dict[str, object] = {"form": plan.form} if plan is not None else {}
    job = job or facts.one(Job)
    if job is not None:
        known = all(pid_of(member.rank) is None for member in facts.of(JobRank, cell=job.cell))
        extra.update(
            form="" if only_dumps(job) else job.launcher,
            world_seen=_world_says(job) if known else "not all ranks are known",
        )
        pid = job.launcher_pid or next(
            (member.pid for member in facts.of(JobRank, cell=job.cell)), None
        )
        extra.update(
            ({"pid": pid} if pid and pid > 0 else {})
            | ({"reach": facts.of(Reach)[0].command} if facts.of(Reach) else {})
        )
    if facts.one(Interrupted) is not None:
        extra["interrupted"] = True
    return extra


def verdict_of(facts: Facts, groups: Sequence[SuspectGroup]) -> Verdict:
    """The verdict, by rule (docs/design.md): hung before crashed before at-risk; healthy only
    where all that applies was seen to pass.
    """
    modes = {group.mode for group in groups}
    ranked = [
        rung
        for rung in failing_rungs(facts)
        if any(group.cell == rung.cell and group.mode in ("hang", "crash") for group in groups)
    ]
    if "hang" in modes or any(is_hung(facts, rung) for rung in ranked):
        return "hung"
    if "crash" in modes:
        return "crashed"
    if "slow" in modes:
        return "slow"
    if modes:
        return "at-risk"
    return "undetermined" if doubts(facts) else "healthy"


def _conclusive(facts: Facts, verdict: Verdict) -> bool:
    return (
        verdict == "healthy"
        if verdict in ("healthy", "undetermined")
        else facts.one(Interrupted) is None
    )


def _in_order(ranked: Sequence[RankedGroup]) -> tuple[PlacedCause, ...]:
    """First places first, group by group, then all other candidates by confidence; the same
    cause on the same ranks stands once.
    """
    first = [
        replace(group.placed[0], group=index) for index, group in enumerate(ranked) if group.placed
    ]
    rest = [
        replace(cause, group=index)
        for index, group in enumerate(ranked)
        for cause in group.placed[1:]
    ]
    rest.sort(
        key=lambda cause: (cause.group, -cause.confidence)
    )  # those alike stay in the order of their points
    seen: set[tuple[object, ...]] = set()
    kept = []
    for cause in [*first, *rest]:
        group = ranked[cause.group].group
        # what each of several nodes has for itself
        nodes = cause.hosts if group.unready or group.cell.partition("@")[2] in group.hosts else ()
        key = (cause.id, cause.ranks, nodes) if cause.id != "unknown" else (cause.id, cause.group)
        if key not in seen:
            seen.add(key)
            kept.append(cause)
    return tuple(kept)


def _headline(
    facts: Facts, verdict: Verdict, groups: Sequence[SuspectGroup], placed: Sequence[PlacedCause]
) -> str:
    if is_readiness(facts):
        return ready_says(facts, verdict, groups)
    if groups and placed:
        return _sentence(groups[0].says)
    if verdict == "healthy":
        passed = sum(1 for rung in as_given(facts) if rung.outcome == "passed")
        return (
            f"All {passed} checks that apply here passed."
            if passed != 1
            else "The one check that applies here passed."
        )
    if facts.one(Interrupted) is not None:
        return "The run was interrupted before it could decide."
    missed = unanswered(facts)
    if missed:
        return (
            f"The case ends before rung {missed[0]} has its answer: the run was killed, or the case"
            " is damaged."
        )
    missing = next(
        (
            rung
            for rung in as_given(facts)
            if rung.outcome in ("not_measured", "skipped") and not applies_not(rung)
        ),
        None,
    )
    if missing is not None:
        return _sentence(
            f"rung {missing.probe} could not be measured:"
            f" {missing.skipped_because or missing.says or 'no reason was given'}"
        )
    return "Nothing was found, and not everything could be looked at."


def _sentence(says: str) -> str:
    text = says.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def _world(facts: Facts, groups: Sequence[SuspectGroup]) -> World:
    cell = groups[0].cell if groups else ""
    rungs = as_given(facts)
    rung = next((rung for rung in rungs if rung.cell == cell), None)
    if rung is None:
        launched = [rung for rung in rungs if rung.nproc > 1 and rung.outcome == "passed"]
        rung = launched[-1] if launched else None
    plan = facts.one(Plan)
    size = max(plan.nproc, plan.world_size) if plan else 0
    if rung is None or (
        groups and not groups[0].ranks and not groups[0].victims and rung.nproc <= 1
    ):
        return World(size=size)
    blamed = {rank: group for group in groups if group.cell == rung.cell for rank in group.victims}
    rows = []
    for standing in standings(facts, rung):
        group = blamed.get(standing.rank)
        waits_for = (
            ranks_say(group.ranks) if group is not None and group.ranks and standing.alive else ""
        )
        rows.append(
            RankRow(
                standing.rank,
                standing.host,
                standing.pid,
                standing.state,
                standing.where,
                waits_for,
                standing.since_s,
            )
        )
    return World(size=rung.nproc, ranks=tuple(rows))


def _cascade(ranked: Sequence[RankedGroup], placed: Sequence[PlacedCause]) -> tuple[Cascade, ...]:
    rows = []
    for index, ranked_group in enumerate(ranked):
        group = ranked_group.group
        place = next((number for number, cause in enumerate(placed) if cause.group == index), None)
        if group.victims and place is not None:
            verb = (
                ("waits for" if len(group.victims) == 1 else "wait for")
                if group.mode in ("hang", "slow")
                else "broke after"
            )
            whom = ranks_say(group.ranks) if group.ranks else "the others"
            rows.append(
                Cascade(
                    group.victims, _sentence(f"{ranks_say(group.victims)} {verb} {whom}"), place
                )
            )
    return tuple(rows)


def _unexplained(facts: Facts) -> tuple[str, ...]:
    rows = [
        f"{rung.cell} did not pass ({rung.says}), but the full size did."
        for rung in outgrown_rungs(facts)
    ]
    rows += [claims_say(job.claimed) for job in facts.of(Job) if job.claimed]
    if facts.unreadable:
        rows.append(
            f"{len(facts.unreadable)} records of the case could not be understood"
            f" ({', '.join(facts.unreadable[:5])})."
        )
    return tuple(rows)


def _could_not_look(
    facts: Facts, ranked: Sequence[RankedGroup], *, live_undecided: bool = False
) -> list[Undecided]:
    """Refusals in cells that failed; elsewhere a look that was refused could not have changed the
    answer.

    Where the cause is named, a process that had ended before it could be looked at (`unavailable`)
    would not have changed it either. What was asked for by name is answered for always, and a live
    job that stays undecided says what it was denied.
    """
    cells = {group.group.cell for group in ranked} | {job.cell for job in facts.of(Job)}
    settled = {group.group.cell for group in ranked if group.named}
    by_reason: dict[str, str] = {}
    for refusal in facts.refused():
        asked = refusal.kind in ASKED_FOR or (live_undecided and refusal.outcome == "denied")
        if refusal.reason and (
            asked
            or (
                refusal.cell in cells
                and not (refusal.cell in settled and refusal.outcome == "unavailable")
            )
        ):
            by_reason.setdefault(refusal.reason, refusal.kind)
    return [Undecided("cannot-look", f"{kind}: {reason}") for reason, kind in by_reason.items()]


def _left_open(facts: Facts) -> list[Undecided]:
    rows = [
        Undecided("cannot-look", f"{name}: the case ends before its answer")
        for name in unanswered(facts)
    ]
    probes: dict[str, list[str]] = defaultdict(list)
    rungs = as_given(facts)
    for rung in rungs:
        if outgrown(rung, rungs):
            continue
        if rung.outcome == "not_measured" or (
            rung.outcome == "skipped"
            and not applies_not(rung)
            and not rung.unmet.startswith("lower-rung")
        ):
            probes[rung.skipped_because or rung.says or "no reason was given"].append(rung.probe)
    return rows + [
        Undecided("cannot-look", f"{', '.join(dict.fromkeys(names))}: {reason}")
        for reason, names in probes.items()
    ]


def _deep_would_settle(facts: Facts, ranked: Sequence[RankedGroup]) -> list[Undecided]:
    """Ranks of a live job that stand in different calls, or all in one: stacks show neither
    group nor number, the flight recorder does.
    """
    first = ranked[0] if ranked else None
    job = facts.one(Job, cell=first.group.cell) if first is not None else None
    if (
        job is None
        or not job.launcher
        or first is None
        or first.group.mode != "hang"
        or facts.of(FlightDump, cell=job.cell)
    ):
        return []
    sure = first.placed and first.placed[0].named and first.placed[0].confidence >= SURE
    if sure or first.group.how not in ("cycle", "stuck-inside") or not first.placed:
        return []
    (look,) = at_its_host(f"trainprobe attach {_extra(facts, job).get('pid', '<PID>')} --deep")
    return [
        Undecided(
            first.placed[0].id,
            f"{look}: the ranks' flight recorders tell the group and the number of every call",
        )
    ]


def _next_look(live: LiveView | None, placed: Sequence[PlacedCause]) -> list[Undecided]:
    """What would tell more of a live job than this look could."""
    return (
        [Undecided(placed[0].id if placed else "unknown", live.next_look)]
        if live is not None and live.next_look
        else []
    )


def _row(rung: Rung, facts: Facts) -> LadderRow:
    outcome = (
        rung.outcome
        if rung.outcome in ("passed", "failed", "timed_out", "crashed", "skipped")
        else "not_measured"
    )
    return LadderRow(
        rung=rung.rung,
        probe=rung.probe,
        outcome=outcome,  # type: ignore[arg-type] # one of the literal's words by the line above
        took_s=round(rung.took_s, 2),
        ranks=rung.ranks,
        measures=rung.measures,
        says=rung.says if rung.outcome != "skipped" else (rung.skipped_because or rung.says),
        question=rung.question,
        cell=rung.cell,
        nproc=rung.nproc,
        extra=told_of_row(facts, rung) | ({"hosts": list(rung.hosts)} if rung.hosts else {}),
    )


def _stack_classes(facts: Facts, groups: Sequence[SuspectGroup], live: LiveView | None) -> Stacks:
    cell = groups[0].cell if groups else live.job.cell if live is not None else ""
    if not cell:
        return Stacks()
    stacks: dict[int, tuple[Frame, ...]] = {}
    classes: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for thread in facts.of(MainThread, cell=cell):
        if thread.rank is not None and thread.role == "rank" and thread.frames:
            stacks.setdefault(thread.rank, thread.frames)
            classes[tuple(frame.where for frame in thread.frames)].append(thread.rank)
    ordered = sorted(classes.items(), key=lambda item: (len(item[1]), item[1]))
    return Stacks(
        tuple(StackClass(fold_ranks(sorted(set(ranks))), frames) for frames, ranks in ordered),
        tree_of(stacks),
    )


def _unique(rows: Iterable[object]) -> tuple:  # type: ignore[type-arg] # rows of one kind, as they came
    return tuple(dict.fromkeys(rows))
