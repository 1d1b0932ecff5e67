"""The right half of the picture: evidence in, diagnosis out. Pure, total and repeatable: it
never touches the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.causes.cause import Cause
from trainprobe.causes.classes import is_component
from trainprobe.causes.linted import lint_notices
from trainprobe.causes.priors import Priors
from trainprobe.facts import (
    Facts,
    HostCheck,
    Interrupted,
    Job,
    JobRank,
    MainThread,
    Plan,
    Reach,
    Rung,
    SourceSite,
)
from trainprobe.facts.sbatch_plan import told_of_script
from trainprobe.model.diagnosis import (
    Cascade,
    Diagnosis,
    LadderRow,
    Notice,
    PlacedCause,
    StackClass,
    Stacks,
    Suspect,
    Undecided,
    World,
)
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import fold_ranks
from trainprobe.model.unnumbered import by_pid, pid_of
from trainprobe.ranking import RankedGroup, rank_group
from trainprobe.stacks.folding import tree_of
from trainprobe.stacks.frames import Frame
from trainprobe.waits import Situation, outgrown_rungs, settled, situation_of
from trainprobe.waits.climb_result import climb_of
from trainprobe.waits.deadlines import advice, expiries, killing, lock_holder
from trainprobe.waits.divergence import claims_say, ranks_say
from trainprobe.waits.excerpts import excerpts
from trainprobe.waits.model_stress import told_of, told_of_row
from trainprobe.waits.predicted_limits import predictions
from trainprobe.waits.readiness import is_readiness
from trainprobe.waits.readiness_report import readiness, ready_notices
from trainprobe.waits.timeline import logged_extra

# What is done only when asked for by name (`--deep`, `--trigger-dump`, `--env FILE`, PATH).
ASKED_FOR = ("deep", "trigger_dump", "node.look", "given", "input")
# In a report's extra part: a look inside the ranks would tell more.
DEEP_WOULD_SETTLE = "deep_would_settle"
# Below this confidence one more look by name is worth its while.
SURE = 0.9
# Nobody reads more troubles than these, and weighing one takes time that grows with the world.
_MOST_GROUPS = 16
# Causes that say, with what ends it, all that a warning of the same would say.
_TELLS = {
    "leftover-processes": "host.leftovers",
    "accidental-data-parallel": "script.data-parallel",
}


def judge(
    facts: Facts, causes: Sequence[Cause], priors: Priors, notes: Iterable[str] = ()
) -> Diagnosis:
    """Give the verdict by rule, then name the causes. `notes` are sentences that the reader must
    see (a plugin that failed to load).
    """
    now = situation_of(facts)
    ranked = [rank_group(facts, group, causes, priors) for group in now.groups[:_MOST_GROUPS]]
    if now.tentative:
        now = settled(now, *_titles(ranked))
        kept = {(group.cell, group.mode, group.phase) for group in now.groups}
        ranked = [
            one for one in ranked if (one.group.cell, one.group.mode, one.group.phase) in kept
        ]
    groups, more = now.groups[:_MOST_GROUPS], len(now.groups) - _MOST_GROUPS
    if more > 0:
        notes = (*notes, f"{more} more groups of suspects were found and not weighed.")
    placed = _in_order(ranked)
    deeper = _deep_would_settle(ranked)
    shown = excerpts(facts, placed, [one.group.cell for one in ranked])
    ends = expiries(facts, now) if now.running else ()
    cost = killing(facts, now) if now.running else None
    holder = lock_holder(facts, now, placed[0].pids if placed and placed[0].named else ())
    found_all = Diagnosis(
        verdict=now.verdict,
        conclusive=_conclusive(facts, now),
        says=_sentence(now.says),
        world=_with_source(facts, now.world, now.cell),
        suspects=tuple(
            Suspect(
                group.ranks, group.hosts, group.how, _sentence(group.says), extra=told_of(group)
            )
            for group in groups
        ),
        causes=placed,
        cascade=_cascade(now, ranked, placed),
        unexplained=(*_unexplained(facts), *map(_sentence, now.remarks), *notes),
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
                *_could_not_look(facts, now, ranked),
                *(Undecided("cannot-look", says) for says in now.open),
                *deeper,
                *_next_look(now, placed),
            ]
        ),
        ladder=tuple(_row(rung, facts) for rung in facts.of(Rung)),
        stacks=_stack_classes(facts, groups[0].cell if groups else now.cell),
        warnings=_warnings(facts, placed),
        expiry=ends,
        killing=cost,
        advice=advice(now, ends, cost, holder) if cost is not None else "",
        climb=climb_of(facts, placed),
        predictions=predictions(facts),
        extra=_extra(facts, now)
        | ({DEEP_WOULD_SETTLE: True} if deeper else {})
        | ({"excerpts": shown} if shown else {}),
    )
    return (
        _unnumbered_by_pid(found_all)
        if any(pid_of(one.rank) is not None for one in facts.of(JobRank))
        else found_all
    )


def _titles(ranked: Sequence[RankedGroup]) -> tuple[str, str]:
    """Of the first group the title of its named cause, and that of the component in which the
    trouble shows; each empty where there is none.
    """
    first = ranked[0].placed[0] if ranked and ranked[0].placed else None
    if first is None:
        return "", ""
    held = next((one.title for one in first.classes if is_component(one.id)), "")
    return first.title if first.named else "", held


def _with_source(facts: Facts, world: World, cell: str) -> World:
    """The ranks with the lines of the program at which they stand, where those were read."""
    sites = facts.of(SourceSite, cell=cell)
    if not sites:
        return world
    lines = {(site.file, site.line): site.text.strip() for site in sites}
    own = {(site.rank, site.file, site.line): site.text.strip() for site in sites}
    at = {
        (thread.pid, thread.where): own.get(
            (thread.rank, thread.user_file, thread.user_line),
            lines.get((thread.user_file, thread.user_line), ""),
        )
        for thread in facts.of(MainThread, cell=cell)
        if thread.role == "rank"
    }
    rows = (replace(row, source=at.get((row.pid or 0, row.where), "")) for row in world.ranks)
    return replace(world, ranks=tuple(rows))


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


def _extra(facts: Facts, now: Situation) -> dict[str, object]:
    plan = facts.one(Plan)
    extra: dict[str, object] = {"form": plan.form} if plan is not None else {}
    job = facts.one(Job, cell=now.cell) or facts.one(Job)
    if job is not None:
        known = all(pid_of(member.rank) is None for member in facts.of(JobRank, cell=job.cell))
        extra.update(
            form=_form(job) if now.running else "",
            world_seen=_world_says(job) if known else "not all ranks are known",
        )
        pid = _pid(facts, job)
        extra.update(
            ({"pid": pid} if pid else {})
            | ({"reach": facts.of(Reach)[0].command} if facts.of(Reach) else {})
        )
    if facts.one(Interrupted) is not None:
        extra["interrupted"] = True
    extra.update(logged_extra(facts, now.attempts))
    if is_readiness(facts):
        extra["readiness"] = readiness(facts, now.groups, now.verdict)
    return extra | told_of_script(facts)


def _form(job: Job) -> str:
    return f"{job.launcher}, the only job below {job.below}" if job.below else job.launcher


def _pid(facts: Facts, job: Job) -> int | None:
    """Of the launcher, else of a rank; None where no process is known."""
    pid = job.launcher_pid or next((one.pid for one in facts.of(JobRank, cell=job.cell)), None)
    return pid if pid and pid > 0 else None


def _conclusive(facts: Facts, now: Situation) -> bool:
    if now.verdict in ("healthy", "undetermined"):
        return now.verdict == "healthy" and now.conclusive
    return facts.one(Interrupted) is None and now.conclusive


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


def _sentence(says: str) -> str:
    text = says.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def _cascade(
    now: Situation, ranked: Sequence[RankedGroup], placed: Sequence[PlacedCause]
) -> tuple[Cascade, ...]:
    """What followed from each group: the ranks that failed after it, each kind in one row, and
    those that wait for it.
    """
    rows = []
    echoes = list(now.echoes)
    for index, ranked_group in enumerate(ranked):
        group = ranked_group.group
        place = next((number for number, cause in enumerate(placed) if cause.group == index), None)
        if place is None:
            continue
        mine = [echo for echo in echoes if echo.cell == group.cell]
        echoes = [echo for echo in echoes if echo.cell != group.cell]
        rows += [Cascade(echo.ranks, _sentence(echo.says), place) for echo in mine]
        heard = {rank for echo in mine for rank in echo.ranks}
        victims = tuple(rank for rank in group.victims if rank not in heard)
        if victims:
            verb = (
                ("waits for" if len(victims) == 1 else "wait for")
                if group.mode in ("hang", "slow")
                else "broke after"
            )
            whom = ranks_say(group.ranks) if group.ranks else "the others"
            rows.append(Cascade(victims, _sentence(f"{ranks_say(victims)} {verb} {whom}"), place))
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


def _could_not_look(facts: Facts, now: Situation, ranked: Sequence[RankedGroup]) -> list[Undecided]:
    """Refusals in cells that failed; elsewhere a look that was refused could not have changed the
    answer.

    Where the cause is named, a process that had ended before it could be looked at (`unavailable`)
    would not have changed it either. What was asked for by name is answered for always, and a
    running job that stays undecided says what it was denied.
    """
    undecided = now.running and now.verdict == "undetermined"
    cells = {group.group.cell for group in ranked} | {job.cell for job in facts.of(Job)}
    settled = {group.group.cell for group in ranked if group.named}
    by_reason: dict[str, str] = {}
    for refusal in facts.refused():
        asked = refusal.kind in ASKED_FOR or (undecided and refusal.outcome == "denied")
        if refusal.reason and (
            asked
            or (
                refusal.cell in cells
                and not (refusal.cell in settled and refusal.outcome == "unavailable")
            )
        ):
            by_reason.setdefault(refusal.reason, refusal.kind)
    return [Undecided("cannot-look", f"{kind}: {reason}") for reason, kind in by_reason.items()]


def _deep_would_settle(ranked: Sequence[RankedGroup]) -> list[Undecided]:
    """The look inside the ranks, where it would tell what the first group's stacks do not."""
    first = ranked[0] if ranked else None
    if first is None or first.deep is None or not first.placed:
        return []
    if first.named and first.placed[0].confidence >= SURE:
        return []
    says = "the ranks' flight recorders tell the group and the number of every call"
    return [Undecided(first.placed[0].id, f"{first.deep.steps[0]}: {says}")]


def _next_look(now: Situation, placed: Sequence[PlacedCause]) -> list[Undecided]:
    """What would tell more than this look could."""
    return (
        [Undecided(placed[0].id if placed else "unknown", now.next_look)] if now.next_look else []
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


def _stack_classes(facts: Facts, cell: str) -> Stacks:
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
