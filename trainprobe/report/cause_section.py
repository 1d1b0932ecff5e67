"""One placed cause: its certainty, summary, chain and reasons, and what to type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.model.diagnosis import Fix, Link, PlacedCause
from trainprobe.report.lines import Line, Span, Style, span, typed, wrapped
from trainprobe.report.phrases import certainty, clean, columns, percent

INDENT = "    "
UNKNOWN = "unknown"
IDS_CAP = 4
REASONS_CAP = 2
WORTH_NAMING = 0.01
MUCH_SURER = 0.1  # a class that is surer by that much is worth a line beside its cause
_PLURALS = {
    "is": "are",
    "has": "have",
    "waits": "wait",
    "stands": "stand",
    "joins": "join",
    "wants": "want",
    "asks": "ask",
}
STYLE_OF: dict[str, Style] = {
    "almost certain": "bad",
    "likely": "bad",
    "leading": "warn",
    "undecided": "warn",
}
RISK = {"disruptive": "it disturbs the job"}


def cause_lines(
    cause: PlacedCause,
    place: int,
    width: int,
    *,
    others: Sequence[PlacedCause] = (),
    brief: bool = False,
    verbose: bool = False,
    said: str = "",
    source: Sequence[Line] = (),
) -> list[Line]:
    """Return a cause: what it is, the lines of the program (`source`), what to do, and why; the
    `others` of its group in one sentence. `brief` keeps its line, its summary and the first thing
    to do, `verbose` adds the chain, the points and the ids of the evidence. `said` is what stands
    above already.
    """
    lines = [_title(cause, place, width, others)]
    lines += wrapped([span(_unsaid(cause, said))], width, first=INDENT)
    lines += _surer(cause, width)
    if brief:
        return [*lines, *_fix(cause.fixes[0], 0, width)] if cause.fixes else lines
    lines += source
    behind = _others(cause, others, width, every=verbose)
    if _is_undecided(cause, others):
        lines, behind = [*lines, *behind], []
    for number, fix in enumerate(cause.fixes):
        last = number + 1 == len(cause.fixes)
        same_follows = not last and (cause.fixes[number + 1].verify == fix.verify or not verbose)
        lines += _fix(replace(fix, verify="") if same_follows else fix, number, width)
    lines += behind
    lines += _why(cause, width, verbose=verbose)
    if verbose and cause.chain:
        first = f"{INDENT}chain "
        lines += wrapped(_chain(cause.chain), width, first=first, rest=" " * 12)
    if cause.docs and cause.id != UNKNOWN:
        page = span(f"trainprobe causes {cause.id}", "faint")
        lines += wrapped([page], width, first=f"{INDENT}page ")
    return lines


def _why(cause: PlacedCause, width: int, *, verbose: bool) -> list[Line]:
    """The reasons, the strongest first; those against it and their points only where `verbose`."""
    reasons = sorted(cause.because, key=lambda weighing: -weighing.points)
    if not verbose:
        reasons = [weighing for weighing in reasons if weighing.points > 0][:REASONS_CAP]
    lines: list[Line] = []
    for weighing in reasons:
        label = "     " if lines else "why  "
        start = f"{INDENT}{label}{weighing.points:+3d} " if verbose else f"{INDENT}{label}"
        ids = _ids(weighing.evidence) if verbose else ""
        lines += wrapped([span(weighing.says), span(ids, "faint")], width, first=start)
    return lines


def _others(
    cause: PlacedCause, others: Sequence[PlacedCause], width: int, *, every: bool
) -> list[Line]:
    """The candidates behind it; those below one percent only where `every` is wanted."""
    behind = sorted(others, key=lambda other: (-other.confidence, other.id))
    if not every:
        behind = [other for other in behind if other.confidence >= WORTH_NAMING]
    if not behind:
        return []
    says = ", ".join(f"{other.id} {percent(other.confidence)}" for other in behind)
    open_ = _is_open(cause) or _is_undecided(cause, others)
    return wrapped([span(says)], width, first=f"{INDENT}{'maybe ' if open_ else 'or   '}")


def _is_undecided(cause: PlacedCause, others: Sequence[PlacedCause]) -> bool:
    """Whether no cause is named, although a candidate is likelier than that none fits."""
    best = max((other.confidence for other in others if other.id != UNKNOWN), default=0.0)
    return cause.id == UNKNOWN and not cause.classes and best > cause.confidence


def _unsaid(cause: PlacedCause, said: str) -> str:
    """The summary; where no cause is named without the title, and without what `said` says."""
    text = cause.summary or cause.title
    if not _is_open(cause):
        return text
    _, told, rest = text.partition(said.strip().rstrip(".")[1:]) if said else ("", "", "")
    if told and rest.strip(" ."):
        return rest.lstrip(" .")
    text = text.removeprefix(f"{cause.title}: ")
    return f"{text[:1].upper()}{text[1:]}"


def how_sure(cause: PlacedCause) -> str:
    """Return the certainty in words and percent, such as `almost certain, 97 %`."""
    if cause.id == UNKNOWN and not cause.classes:
        return f"no cause fits, {percent(cause.confidence)}"
    word = certainty(cause.confidence, named=cause.named or _is_open(cause))
    open_ = "; its cause is open" if _is_open(cause) else ""
    return f"{word}, {percent(cause.confidence)}{open_}"


def heading(cause: PlacedCause) -> str:
    """Return what stands over a cause: its id, or its class where no cause is named."""
    return cause.title if _is_open(cause) else cause.id


def _is_open(cause: PlacedCause) -> bool:
    """Whether the trouble is located, and no cause of it is named."""
    return cause.id == UNKNOWN and bool(cause.classes)


def _surer(cause: PlacedCause, width: int) -> list[Line]:
    """What is much surer of a named cause than the cause itself: its class."""
    if not cause.named or not cause.classes:
        return []
    held = cause.classes[0]
    if held.confidence - cause.confidence < MUCH_SURER:
        return []
    says = f"{held.title}: {certainty(held.confidence)}, {percent(held.confidence)}"
    return wrapped([span(says, "faint")], width, first=f"{INDENT}sure ")


def who_and_risk(fix: Fix) -> str:
    """Return who must act and what it does to the job, such as `an administrator`; empty for what
    you can do yourself without harm.
    """
    who = ["an administrator"] if fix.who == "admin" or fix.risk == "needs-admin" else []
    return "; ".join([*who, *([RISK[fix.risk]] if fix.risk == "disruptive" else [])])


def _title(cause: PlacedCause, place: int, width: int, others: Sequence[PlacedCause] = ()) -> Line:
    word = certainty(cause.confidence, named=cause.named or _is_open(cause))
    sure, head = how_sure(cause), heading(cause)
    if _is_undecided(cause, others):
        sure, head = word, "No candidate is sure"
    name = clean(head)[: width - len(sure) - len(INDENT) - 2]
    gap = width - len(INDENT) - columns(name) - len(sure)
    start = (Span(f"{place:>2}  "), Span(name, "strong"), Span(" " * gap))
    return (*start, Span(sure, STYLE_OF[word]))


def _chain(chain: Sequence[Link]) -> list[Span]:
    pieces: list[Span] = []
    last = ""
    for link in chain:
        if link.waiter != last:
            pieces.append(span(f"{'; ' if last else ''}{link.waiter}"))
        how = _plural(link.how) if link.waiter.startswith("ranks ") else link.how
        pieces += [span(f"({how})", "faint")] if how else []
        pieces += [span("->", "faint"), span(link.awaited)]
        last = link.awaited
    return pieces


def _plural(how: str) -> str:
    """`is inside backward` of several ranks: `are inside backward`."""
    word, _, rest = how.partition(" ")
    return f"{_PLURALS[word]} {rest}" if word in _PLURALS else how


def _ids(evidence: Sequence[str]) -> str:
    """The first few ids in brackets; all are in the JSON."""
    if not evidence:
        return ""
    more = f" and {len(evidence) - IDS_CAP} more" if len(evidence) > IDS_CAP + 1 else ""
    return f"({', '.join(evidence[:IDS_CAP] if more else evidence)}{more})"


def _fix(fix: Fix, number: int, width: int) -> list[Line]:
    label = "do   " if number == 0 else "     "
    start = f"{INDENT}{label}{number + 1}. "
    who = who_and_risk(fix)
    title = [span(fix.title), *([span(f"[{who}]", "warn")] if who else [])]
    lines = wrapped(title, width, first=start)
    indent = " " * len(start)
    for step in fix.steps:
        lines += typed(step, width, indent=indent)
    if fix.verify:
        line = wrapped([span("then:", "faint"), span(fix.verify, "command")], width, first=indent)
        if len(line) > 1:  # over several lines it must remain one command when it is copied
            line = [(Span(indent), Span("then:", "faint"))]
            line += typed(fix.verify, width, indent=f"{indent}  ")
        lines += line
    return lines
