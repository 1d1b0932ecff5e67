"""What changed between two judged runs of one job, in words and side by side: the causes, where the
ranks stood, what was checked, what it ran with, and how far it came.

Both are judged before; nothing is concluded here.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainprobe.facts.run_values import PARTS, Part, RunValue, RunValues
from trainprobe.model.diagnosis import PlacedCause, RankRow, Report
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import and_list, name_ranks
from trainprobe.report.cause_section import heading, how_sure
from trainprobe.report.comparison_section import Compared
from trainprobe.report.outcomes import outcomes
from trainprobe.report.phrases import duration
from trainprobe.report.text import first_causes

PLACES_CAP, RUNGS_CAP, NAMED_CAP, ROWS_CAP = 8, 12, 6, 200
LONGEST = 400
NOT_SET = "not set"
_ENDS = ("exited", "crashed")
# Memory that the kernel keeps for itself differs by so much from boot to boot, and the time of a
# step from run to run.
_SAME_AMOUNT, _SAME_PACE = 0.05, 0.25
_NAMES: Mapping[Part, str] = {
    "launch": "its launch",
    "environment": "its environment",
    "versions": "the versions",
    "limits": "the limits",
    "progress": "how far it came",
}


@dataclass(frozen=True)
class Comparison:
    """`sentences` are what changed, the most important first; `rows` stand side by side."""

    sentences: tuple[str, ...]
    rows: tuple[Compared, ...]


def with_comparison(
    before: Report, after: Report, ran_before: RunValues, ran_after: RunValues, since: str
) -> Report:
    """Return the report `after` with what changed since `before`, as plain data in `against`.
    `since` is how the user called the earlier run.
    """
    found = compared(before, after, ran_before, ran_after)
    against = {
        "since": since,
        "command": before.command,
        "verdict": before.verdict,
        "says": before.says,
        "sentences": list(found.sentences),
        "rows": [
            {
                "part": row.part,
                "name": row.name,
                "before": row.before,
                "after": row.after,
                "changed": row.is_changed,
            }
            for row in found.rows
        ],
    }
    return replace(after, extra={**after.extra, "against": against})


def compared(
    before: Report, after: Report, ran_before: RunValues, ran_after: RunValues
) -> Comparison:
    """Compare two reports and what their runs ran with, the earlier one first."""
    # another version may look for other names
    by_one_list = before.tool.version == after.tool.version and (
        ran_before.environment_by == ran_after.environment_by != ""
    )
    rows = _of_runs(ran_before, ran_after, by_one_list=by_one_list)
    return Comparison(
        sentences=(
            _verdicts(before, after),
            *_causes(before, after),
            *_worlds(before, after),
            *_places(before, after),
            *_conditions(rows, ran_before, ran_after),
            *_paces(rows, ran_before, ran_after),
            *_checks(before, after),
            *_rungs(before, after),
        ),
        rows=(
            *(
                Compared("answer", name, old, new, old != new)
                for name, old, new in (
                    ("verdict", before.verdict, after.verdict),
                    ("in words", before.says, after.says),
                    *_of_cause(before, after),
                    ("ranks in all", _size(before), _size(after)),
                    ("seen by", before.command, after.command),
                )
                if old or new
            ),
            *rows[:ROWS_CAP],
        ),
    )


def _verdicts(before: Report, after: Report) -> str:
    if before.verdict == after.verdict:
        return f"It was {before.verdict} and still is."
    return f"It was {before.verdict} and is {after.verdict} now."


def _first(report: Report) -> PlacedCause | None:
    found = first_causes(report)
    return found[0] if found else None


def _causes(before: Report, after: Report) -> list[str]:
    old = {heading(cause): cause for cause in first_causes(before)}
    new = {heading(cause): cause for cause in first_causes(after)}
    says = [
        f"{name} ({how_sure(cause)}) is not found any more."
        for name, cause in old.items()
        if name not in new
    ]
    says += [
        f"{name} ({how_sure(cause)}) is new." for name, cause in new.items() if name not in old
    ]
    for name in (name for name in new if name in old):
        was, now = old[name], new[name]
        if was.ranks != now.ranks:
            says.append(
                f"{name} was about {name_ranks(was.ranks, 'no rank')} and is about"
                f" {name_ranks(now.ranks, 'no rank')} now."
            )
        else:
            says.append(f"{name} is the cause in both.")
    return says


def _of_cause(before: Report, after: Report) -> list[tuple[str, str, str]]:
    old, new = _first(before), _first(after)

    def shown(cause: PlacedCause | None) -> tuple[str, str, str, str]:
        if cause is None:
            return "", "", "", ""
        hosts = folded(cause.hosts)
        return heading(cause), how_sure(cause), name_ranks(cause.ranks), hosts

    names = ("cause", "confidence", "about", "on")
    return list(zip(names, shown(old), shown(new), strict=True))


def _size(report: Report) -> str:
    return str(report.world.size or len(report.world.ranks) or "")


def _worlds(before: Report, after: Report) -> list[str]:
    old, new = before.world.size, after.world.size
    return [f"The job had {old} ranks and has {new} now."] if old and new and old != new else []


def _places(before: Report, after: Report) -> list[str]:
    """Ranks that stand elsewhere, by where they stood and stand. In a healthy job they stand
    elsewhere in each look: of two of them only another state counts.
    """
    fine = before.verdict == after.verdict == "healthy"
    old = {row.rank: row for row in before.world.ranks if row.rank is not None}
    new = {row.rank: row for row in after.world.ranks if row.rank is not None}
    moved: dict[tuple[str, str], list[int]] = {}
    still: list[int] = []
    for rank in sorted(old.keys() & new.keys()):
        if old[rank].state == "unseen":
            continue
        was, now = _place(old[rank]), _place(new[rank])
        if was == now or (fine and old[rank].state == new[rank].state):
            still.append(rank)
        else:
            moved.setdefault((was, now), []).append(rank)
    ordered = sorted(moved.items(), key=lambda item: -len(item[1]))
    says = []
    for (was, now), ranks in ordered[:PLACES_CAP]:
        one = len(ranks) == 1
        then = f"{'had' if was.startswith(_ENDS) else 'was' if one else 'were'} {was}"
        has = ("has" if one else "have") if now.startswith(_ENDS) else "is" if one else "are"
        says.append(f"{_who(ranks)} {then} and {has} {now} now.")
    if len(ordered) > PLACES_CAP:
        says.append(f"Ranks moved in {len(ordered) - PLACES_CAP} more ways.")
    if still and not fine:
        verb, they = ("stands", "it") if len(still) == 1 else ("stand", "they")
        says.append(f"{_who(still)} {verb} where {they} stood.")
    return says


def _who(ranks: list[int]) -> str:
    who = name_ranks(ranks)
    return f"{who[:1].upper()}{who[1:]}"


def _place(row: RankRow) -> str:
    state = "not seen" if row.state == "unseen" else row.state
    return f"{state} at {row.where.strip()}" if row.where.strip() else state


def _of_runs(before: RunValues, after: RunValues, *, by_one_list: bool) -> tuple[Compared, ...]:
    """All values that both know, those that differ first. A variable that one run does not tell is
    a difference only where both environments were written down by one list.
    """
    rows = []
    for key in dict.fromkeys((*before.values, *after.values)):
        part, name = key
        old, new = before.values.get(key), after.values.get(key)
        absent = NOT_SET if part == "environment" and by_one_list else ""
        was = old.value if old is not None else absent
        now = new.value if new is not None else absent
        if was and now:
            is_changed = not _same(old, new)
            rows.append(Compared(part, name, was[:LONGEST], now[:LONGEST], is_changed))
    return tuple(sorted(rows, key=lambda row: (not row.is_changed, _order(row.part))))


def _order(part: str) -> int:
    return next((place for place, one in enumerate(PARTS) if one == part), len(PARTS))


def _same(old: RunValue | None, new: RunValue | None) -> bool:
    if old is None or new is None:
        return False
    if old.number is None or new.number is None or old.value == new.value:
        return old.value == new.value
    share = _SAME_PACE if old.part == "progress" else _SAME_AMOUNT
    return abs(new.number - old.number) <= share * max(abs(old.number), abs(new.number))


def _conditions(rows: tuple[Compared, ...], before: RunValues, after: RunValues) -> list[str]:
    """What differs in what the runs ran with, and what could not be compared."""
    known = [row for row in rows if row.part != "progress"]
    changed = [row for row in known if row.is_changed]
    says = [_changed(row) for row in changed[:NAMED_CAP]]
    if len(changed) > NAMED_CAP:
        names = and_list([row.name for row in changed[NAMED_CAP : NAMED_CAP * 3]])
        more = len(changed) - NAMED_CAP * 3
        says.append(f"{names}{f' and {more} more' if more > 0 else ''} differ as well.")
    if known and not changed:
        says.append(
            f"Nothing else differs that both tell of: {_values(len(known))}"
            " of launch, environment, versions and limits are the same."
        )
    alone = [
        _NAMES[part]
        for part in PARTS
        if (part in before.parts()) != (part in after.parts()) and part != "progress"
    ]
    if alone:
        says.append(f"Only one of the two tells {and_list(alone)}: not compared.")
    return says


def _values(count: int) -> str:
    return f"{count} {'value' if count == 1 else 'values'}"


def _changed(row: Compared) -> str:
    if row.name in ("command", "launched by"):
        gone, come = _other_words(row.before, row.after)
        if gone or come:
            was = f" had {gone}" if gone else ""
            now = f" has {come} now" if come else " has it no more"
            what = "The command" if row.name == "command" else "The launcher's command"
            return f"{what}{was}{' and' if was else ''}{now}."
    if row.before == NOT_SET:
        return f"{row.name} was not set and is {row.after} now."
    if row.after == NOT_SET:
        return f"{row.name} was {row.before} and is not set now."
    name = f"The {row.name}" if row.part == "launch" else row.name
    return f"{name} was {row.before} and is {row.after} now."


def _other_words(before: str, after: str) -> tuple[str, str]:
    """The words of two commands that the other has not, with the option before a value."""
    old, new = _words(before), _words(after)
    gone: list[str] = []
    come: list[str] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for how, low, high, first, last in matcher.get_opcodes():
        if how == "equal":
            continue
        others = (*old[low:high], *new[first:last])
        is_value = low > 0 and old[low - 1].startswith("--") and not others[0].startswith("-")
        gone += old[low - is_value : high] if low < high else []
        come += new[first - is_value : last] if first < last else []
    return " ".join(gone), " ".join(come)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _paces(rows: tuple[Compared, ...], before: RunValues, after: RunValues) -> list[str]:
    says = []
    for row in rows:
        if row.part != "progress" or not row.is_changed:
            continue
        key: tuple[Part, str] = ("progress", row.name)
        was, now = before.values[key].number, after.values[key].number
        if row.name == "last step":
            says.append(f"The last step that it told was {row.before} and is {row.after} now.")
        elif row.name == "time per step" and was and now:
            factor = max(was, now) / min(was, now)
            how = f"{factor:.1f} times as {'long' if now > was else 'fast'} as then"
            says.append(f"A step takes {row.after} and took {row.before}: {how}.")
        elif was and now:
            says.append(f"{row.name} was {duration(was)} and is {duration(now)} now.")
    return [f"{one[:1].upper()}{one[1:]}" for one in says]


def _checks(before: Report, after: Report) -> list[str]:
    """Checks of `ready` that came out otherwise, by check."""
    old = {(one.id, one.host): one.state for one in outcomes(before) if one.kind == "check"}
    moved: dict[tuple[str, str, str], list[str]] = {}
    for one in outcomes(after):
        was = old.get((one.id, one.host), one.state)
        if one.kind == "check" and was != one.state:
            moved.setdefault((one.id, was, one.state), []).append(one.host)
    says = []
    for (name, then, now), hosts in moved.items():
        on = folded([host for host in hosts if host])
        says.append(f"Check {name}{f' on {on}' if on else ''}: {now}, was {then}.")
    more = len(says) - RUNGS_CAP
    return says[:RUNGS_CAP] + ([f"{more} more checks came out otherwise."] if more > 0 else [])


def _rungs(before: Report, after: Report) -> list[str]:
    old: Mapping[str, str] = {row.cell or row.probe: row.outcome for row in before.ladder}
    says = [
        f"{row.cell or row.probe}: {row.outcome.replace('_', ' ')}, was"
        f" {old[row.cell or row.probe].replace('_', ' ')}."
        for row in after.ladder
        if old.get(row.cell or row.probe, row.outcome) != row.outcome
    ]
    more = len(says) - RUNGS_CAP
    return says[:RUNGS_CAP] + ([f"{more} more rungs ended otherwise."] if more > 0 else [])
