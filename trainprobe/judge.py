"""The right half of the picture: evidence in, diagnosis out. Pure, total and repeatable: it never touches the machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.causes.cause import Cause
from trainprobe.causes.priors import Priors
from trainprobe.facts import Facts, HostCheck, Interrupted, MainThread, Plan, Rung
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
from trainprobe.ranking import RankedGroup, rank_group
from trainprobe.stacks.tree import fold_ranks
from trainprobe.waits import SuspectGroup, failing_rungs, is_hung, outgrown_rungs, standings, suspect_groups
from trainprobe.waits.divergence import ranks_say

# Why a rung was skipped without leaving a doubt: it does not apply, or the user asked for it.
DOES_NOT_APPLY = ("gpu", "nccl", "script", "asked", "ranks>=2")
# The rung that is tried at growing sizes: an answer at two ranks is none about eight.
_EVERY_SIZE = "user_script"
_MODE_ORDER = {"hang": 0, "crash": 0, "slow": 1, "check": 2}


def judge(facts: Facts, causes: Sequence[Cause], priors: Priors, notes: Iterable[str] = ()) -> Diagnosis:
    """Give the verdict by rule, then name the causes. `notes` are sentences that the reader must see (a plugin that failed to load)."""
    groups = sorted(suspect_groups(facts), key=lambda group: _MODE_ORDER[group.mode])
    ranked = [rank_group(facts, group, causes, priors) for group in groups]
    placed = _in_order(ranked)
    verdict = verdict_of(facts, groups)
    return Diagnosis(
        verdict=verdict,
        conclusive=_conclusive(facts, verdict),
        says=_headline(facts, verdict, groups, placed),
        world=_world(facts, groups),
        suspects=tuple(Suspect(group.ranks, group.hosts, group.how, _sentence(group.says)) for group in groups),
        causes=placed,
        cascade=_cascade(ranked, placed),
        unexplained=(*_unexplained(facts), *notes),
        ruled_out=_unique([row for group in ranked for row in group.ruled_out if row.id not in {cause.id for cause in placed}]),
        undecided=_unique([*(row for group in ranked for row in group.undecided), *_could_not_look(facts, ranked), *_left_open(facts)]),
        ladder=tuple(_row(rung) for rung in facts.of(Rung)),
        stacks=_stack_classes(facts, groups),
        warnings=tuple(Notice(check.name, check.says, check.fix, check.cell) for check in facts.of(HostCheck) if check.status == "warn"),
        extra=_extra(facts),
    )


def _extra(facts: Facts) -> dict[str, object]:
    plan = facts.one(Plan)
    extra: dict[str, object] = {"form": plan.form} if plan is not None else {}
    if facts.one(Interrupted) is not None:
        extra["interrupted"] = True
    return extra


def verdict_of(facts: Facts, groups: Sequence[SuspectGroup]) -> Verdict:
    """The verdict, by rule (docs/design.md): hung before crashed before at-risk; healthy only where all that applies was seen to pass."""
    modes = {group.mode for group in groups}
    ranked = [rung for rung in failing_rungs(facts) if any(group.cell == rung.cell and group.mode in ("hang", "crash") for group in groups)]
    if "hang" in modes or any(is_hung(facts, rung) for rung in ranked):
        return "hung"
    if "crash" in modes:
        return "crashed"
    if "slow" in modes:
        return "slow"
    if modes:
        return "at-risk"
    return "undetermined" if _doubts(facts) else "healthy"


def _doubts(facts: Facts) -> bool:
    """Is there a rung whose answer could have changed the verdict and was not had?"""
    rungs = facts.of(Rung)
    if facts.one(Interrupted) is not None or not any(rung.outcome == "passed" for rung in rungs) or _unanswered(facts):
        return True
    return any(rung.outcome == "not_measured" or (rung.outcome == "skipped" and not _applies_not(rung)) for rung in rungs)


def _unanswered(facts: Facts) -> tuple[str, ...]:
    """The planned rungs of which the case says nothing: whoever gathered was ended before them, or the case is damaged."""
    plan = facts.one(Plan)
    if plan is None:
        return ()
    largest: dict[str, int] = {}
    for rung in facts.of(Rung):
        largest[rung.probe] = max(rung.nproc, largest.get(rung.probe, 0))
    return tuple(name for name in plan.probes if largest.get(name, 0) < (plan.nproc if name == _EVERY_SIZE else 1))


def _applies_not(rung: Rung) -> bool:
    return rung.unmet in DOES_NOT_APPLY


def _conclusive(facts: Facts, verdict: Verdict) -> bool:
    if verdict in ("healthy", "undetermined"):
        return verdict == "healthy"
    return facts.one(Interrupted) is None


def _in_order(ranked: Sequence[RankedGroup]) -> tuple[PlacedCause, ...]:
    """First places first, group by group, then all other candidates by confidence; the same cause on the same ranks stands once."""
    first = [replace(group.placed[0], group=index) for index, group in enumerate(ranked) if group.placed]
    rest = [replace(cause, group=index) for index, group in enumerate(ranked) for cause in group.placed[1:]]
    rest.sort(key=lambda cause: (cause.group, -cause.confidence, cause.id))
    seen: set[tuple[object, ...]] = set()
    kept = []
    for cause in [*first, *rest]:
        key = (cause.id, cause.ranks) if cause.id != "unknown" else (cause.id, cause.group)
        if key not in seen:
            seen.add(key)
            kept.append(cause)
    return tuple(kept)


def _headline(facts: Facts, verdict: Verdict, groups: Sequence[SuspectGroup], placed: Sequence[PlacedCause]) -> str:
    if groups and placed:
        return _sentence(groups[0].says)
    if verdict == "healthy":
        passed = sum(1 for rung in facts.of(Rung) if rung.outcome == "passed")
        return f"All {passed} checks that apply here passed." if passed != 1 else "The one check that applies here passed."
    if facts.one(Interrupted) is not None:
        return "The run was interrupted before it could decide."
    unanswered = _unanswered(facts)
    if unanswered:
        return f"The case ends before rung {unanswered[0]} has its answer: the run was killed, or the case is damaged."
    missing = next((rung for rung in facts.of(Rung) if rung.outcome in ("not_measured", "skipped") and not _applies_not(rung)), None)
    if missing is not None:
        return _sentence(f"rung {missing.probe} could not be measured: {missing.skipped_because or missing.says or 'no reason was given'}")
    return "Nothing was found, and not everything could be looked at."


def _sentence(says: str) -> str:
    text = says.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def _world(facts: Facts, groups: Sequence[SuspectGroup]) -> World:
    cell = groups[0].cell if groups else ""
    rungs = facts.of(Rung)
    rung = next((rung for rung in rungs if rung.cell == cell), None)
    if rung is None:
        launched = [rung for rung in rungs if rung.nproc > 1 and rung.outcome == "passed"]
        rung = launched[-1] if launched else None
    plan = facts.one(Plan)
    size = plan.nproc if plan else 0
    if rung is None or (groups and not groups[0].ranks and not groups[0].victims and rung.nproc <= 1):
        return World(size=size)
    blamed = {rank: group for group in groups if group.cell == rung.cell for rank in group.victims}
    rows = []
    for standing in standings(facts, rung):
        group = blamed.get(standing.rank)
        waits_for = ranks_say(group.ranks) if group is not None and group.ranks and standing.alive else ""
        rows.append(RankRow(standing.rank, standing.host, standing.pid, standing.state, standing.where, waits_for, standing.since_s))
    return World(size=rung.nproc, ranks=tuple(rows))


def _cascade(ranked: Sequence[RankedGroup], placed: Sequence[PlacedCause]) -> tuple[Cascade, ...]:
    rows = []
    for index, ranked_group in enumerate(ranked):
        group = ranked_group.group
        place = next((number for number, cause in enumerate(placed) if cause.group == index), None)
        if group.victims and place is not None:
            verb = ("waits for" if len(group.victims) == 1 else "wait for") if group.mode == "hang" else "broke after"
            whom = ranks_say(group.ranks) if group.ranks else "the others"
            rows.append(Cascade(group.victims, _sentence(f"{ranks_say(group.victims)} {verb} {whom}"), place))
    return tuple(rows)


def _unexplained(facts: Facts) -> tuple[str, ...]:
    rows = [f"{rung.cell} did not pass ({rung.says}), but the full size did." for rung in outgrown_rungs(facts)]
    if facts.unreadable:
        ids = ", ".join(facts.unreadable[:5])
        rows.append(f"{len(facts.unreadable)} records of the case could not be understood ({ids}).")
    return tuple(rows)


def _could_not_look(facts: Facts, ranked: Sequence[RankedGroup]) -> list[Undecided]:
    """Refusals in cells that failed; elsewhere a look that was refused could not have changed the answer.

    Where the cause is named, a process that had ended before it could be looked at (`unavailable`) would not have changed it either.
    """
    cells = {group.group.cell for group in ranked}
    settled = {group.group.cell for group in ranked if group.named}
    by_reason: dict[str, str] = {}
    for refusal in facts.refused():
        if refusal.cell in cells and refusal.reason and not (refusal.cell in settled and refusal.outcome == "unavailable"):
            by_reason.setdefault(refusal.reason, refusal.kind)
    return [Undecided("cannot-look", f"{kind}: {reason}") for reason, kind in by_reason.items()]


def _left_open(facts: Facts) -> list[Undecided]:
    rows = [Undecided("cannot-look", f"{name}: the case ends before its answer") for name in _unanswered(facts)]
    probes: dict[str, list[str]] = defaultdict(list)
    for rung in facts.of(Rung):
        if rung.outcome == "not_measured" or (rung.outcome == "skipped" and not _applies_not(rung) and not rung.unmet.startswith("lower-rung")):
            probes[rung.skipped_because or rung.says or "no reason was given"].append(rung.probe)
    return rows + [Undecided("cannot-look", f"{', '.join(dict.fromkeys(names))}: {reason}") for reason, names in probes.items()]


def _row(rung: Rung) -> LadderRow:
    says = rung.says if rung.outcome != "skipped" else (rung.skipped_because or rung.says)
    outcome = rung.outcome if rung.outcome in ("passed", "failed", "timed_out", "crashed", "skipped") else "not_measured"
    return LadderRow(
        rung=rung.rung,
        probe=rung.probe,
        outcome=outcome,  # type: ignore[arg-type] # one of the literal's words by the line above
        took_s=round(rung.took_s, 2),
        ranks=rung.ranks,
        measures=rung.measures,
        says=says,
        question=rung.question,
        cell=rung.cell,
        nproc=rung.nproc,
    )


def _stack_classes(facts: Facts, groups: Sequence[SuspectGroup]) -> Stacks:
    if not groups:
        return Stacks()
    classes: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for thread in facts.of(MainThread, cell=groups[0].cell):
        if thread.rank is not None and thread.role == "rank" and thread.frames:
            classes[tuple(frame.where for frame in thread.frames)].append(thread.rank)
    ordered = sorted(classes.items(), key=lambda item: (len(item[1]), item[1]))
    return Stacks(tuple(StackClass(fold_ranks(sorted(set(ranks))), frames) for frames, ranks in ordered))


def _unique(rows: Iterable[object]) -> tuple:  # type: ignore[type-arg] # rows of one kind, as they came
    return tuple(dict.fromkeys(rows))
