"""The answer: verdict, cause, rank and host, the user's own lines, what to type, how sure it is and
why. It reads well without a script and stands before everything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.facts import SourceSite
from trainprobe.model.diagnosis import Fix, PlacedCause, Report, Weighing
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import name_ranks
from trainprobe.report.cause_section import UNKNOWN, heading, how_sure, who_and_risk
from trainprobe.report.lines import typed
from trainprobe.report.page.markup import Content, Markup, element, joined, prose
from trainprobe.report.page.source_lines import Excerpt, SourceLine, excerpts_of
from trainprobe.report.phrases import duration, percent
from trainprobe.report.text import headline

SIGNS = {
    "healthy": "✓",
    "slow": "◔",
    "hung": "■",
    "crashed": "✷",
    "at-risk": "▲",
    "undetermined": "?",
}
_REMARK = re.compile(r"\s{2,}\((?P<says>[^()]+)\)\s*$|\s+# (?P<note>[^#'\"]+)$")
_WIDE = 100_000  # columns: the page breaks its lines itself
_IDS_CAP = 6


def answer_section(report: Report, sites: Sequence[SourceSite], shown: frozenset[str]) -> Markup:
    """Return the answer. `shown` are the ids of records that the page can be led to."""
    first, *doubts = headline(report, _WIDE)
    verdict, *rest = [piece for piece in first if piece.text.strip()]
    says = "".join(piece.text for piece in rest).strip()
    groups = _groups(report)
    return element(
        "section",
        element(
            "p",
            element("span", SIGNS[report.verdict], class_="sign", aria_hidden="true"),
            element("span", verdict.text.strip().rstrip("."), class_="word"),
            class_="verdict",
        ),
        element(
            "h1", says or verdict.text, id="answer-title", class_="long" if len(says) > 90 else None
        ),
        *(
            element("p", "".join(piece.text for piece in line).strip(), class_="doubt")
            for line in doubts
        ),
        _climb_says(report),
        *(
            _cause(report, cause, others, place, sites, shown, several=len(groups) > 1)
            for place, (cause, others) in enumerate(groups, start=1)
        ),
        element("div", _side(report), class_="no-cause") if not groups else None,
        id="answer",
        aria_labelledby="answer-title",
        class_=f"answer {report.verdict}",
    )


def _climb_says(report: Report) -> Markup | None:
    climb = report.climb
    if climb is None or climb.smallest_failing is None or not climb.says:
        return None
    return element("p", climb.says, class_="lead")


def _groups(report: Report) -> list[tuple[PlacedCause, list[PlacedCause]]]:
    """The first cause of each suspect group, with those behind it."""
    groups: dict[int, list[PlacedCause]] = {}
    for cause in report.causes:
        groups.setdefault(cause.group, []).append(cause)
    return [(group[0], group[1:]) for group in groups.values()]


def _cause(
    report: Report,
    cause: PlacedCause,
    others: Sequence[PlacedCause],
    place: int,
    sites: Sequence[SourceSite],
    shown: frozenset[str],
    *,
    several: bool,
) -> Markup:
    title = f"cause-{place}"
    summary = cause.summary or cause.title
    excerpts = excerpts_of(report, cause, sites)
    return element(
        "article",
        element(
            "h2",
            element("span", f"{place}. ", class_="place") if several else None,
            element("span", heading(cause), class_="cause-id"),
            id=title,
        ),
        element("p", cause.title, class_="cause-title") if heading(cause) != cause.title else None,
        _facts(cause),
        element(
            "div",
            element(
                "div",
                element("p", prose(summary), class_="summary") if summary != report.says else None,
                _source(excerpts),
                _fixes(cause.fixes),
                class_="main-column",
            ),
            element(
                "div",
                _confidence(cause, others, shown),
                _side(report) if place == 1 else None,
                class_="side",
            ),
            class_="columns",
        ),
        aria_labelledby=title,
        class_="cause",
    )


def _facts(cause: PlacedCause) -> Markup:
    facts: list[tuple[str, Content]] = [("Confidence", how_sure(cause))]
    if cause.ranks:
        label = "Rank" if len(cause.ranks) == 1 else "Ranks"
        facts.append((label, name_ranks(cause.ranks).partition(" ")[2]))
    if cause.hosts:
        label = "Host" if len(cause.hosts) == 1 else "Hosts"
        facts.append((label, folded(cause.hosts) if len(cause.hosts) > 1 else cause.hosts[0]))
    if cause.pids:
        facts.append(
            ("Pid" if len(cause.pids) == 1 else "Pids", ", ".join(map(str, cause.pids[:8])))
        )
    if cause.gpus:
        facts.append(("GPU", ", ".join(map(str, cause.gpus[:8]))))
    if cause.docs and cause.id != UNKNOWN:
        facts.append(("Read more", element("code", f"trainprobe causes {cause.id}")))
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in facts),
        class_="facts",
    )


# ---------------------------------------------------------------------------------------- source


def _source(excerpts: Sequence[Excerpt]) -> Markup | None:
    if not excerpts:
        return None
    return element(
        "div",
        element("h3", "Your code"),
        *map(_excerpt, excerpts),
        class_="source",
    )


def _excerpt(one: Excerpt) -> Markup:
    rows = []
    last = 0
    for line in one.lines:
        if last and line.number > last + 1:
            rows.append(
                element(
                    "tr",
                    element("td", "", class_="number"),
                    element("td", "⋮", aria_label="lines in between", class_="gap"),
                )
            )
        rows.append(_line(line))
        last = line.number
    named = one.function and one.function != "<module>"
    return element(
        "figure",
        element(
            "figcaption",
            element("code", one.file),
            element("span", f"in {one.function}") if named else None,
            title=one.path or None,
        ),
        element("div", element("table", element("tbody", *rows)), class_="scroll", tabindex="0"),
        class_="excerpt",
    )


def _line(line: SourceLine) -> Markup:
    sign = {"guilty": "▶", "waits": "○"}.get(line.mark, "▶" if line.named else "")
    spoken = {"guilty": "guilty line ", "waits": "others wait here "}.get(line.mark, "")
    kind = line.mark or ("named" if line.named else "")
    return element(
        "tr",
        element(
            "td",
            element("span", sign, aria_hidden="true", class_="sign"),
            element("span", spoken, class_="spoken") if spoken else None,
            line.number,
            class_="number",
        ),
        element(
            "td",
            element("code", Markup("&nbsp;" * min(line.indent, 40)), line.text),
            element("span", line.note, class_="note") if line.note else None,
        ),
        class_=kind or None,
    )


# ----------------------------------------------------------------------------------------- fixes


def _fixes(fixes: Sequence[Fix]) -> Markup | None:
    if not fixes:
        return None
    return element(
        "div",
        element("h3", "What to do"),
        element(
            "ol",
            *(
                _fix(
                    fix, checked=[later.verify for later in fixes[place + 1 :][:1]] != [fix.verify]
                )
                for place, fix in enumerate(fixes)
            ),
            class_="fixes",
        ),
    )


def _fix(fix: Fix, *, checked: bool) -> Markup:
    """`checked` is false where the next one is checked by the same command."""
    careful = fix.risk != "safe" or fix.who == "admin"
    return element(
        "li",
        element("b", fix.title),
        element("span", f"⚠ {who_and_risk(fix)}", class_="risk") if careful else None,
        *map(_step, fix.steps),
        joined(element("span", "Then check:", class_="then"), copied(fix.verify))
        if fix.verify and checked
        else None,
    )


def _step(step: str) -> Markup:
    is_command = any(
        piece.style == "command"
        for line in typed(step, _WIDE, indent="")
        for piece in line
        if piece.text
    )
    return copied(step) if is_command else element("p", prose(step), class_="step")


def copied(command: str) -> Markup:
    """Return a command with a button that copies it, without the remark behind it."""
    remark = _REMARK.search(command)
    bare = command[: remark.start()] if remark else command
    return element(
        "div",
        element("pre", element("code", bare)),
        element("span", remark["says"] or remark["note"], class_="remark") if remark else None,
        element(
            "button",
            "Copy",
            type="button",
            data_copy=True,
            aria_label="Copy the command",
            class_="copy script-only",
        ),
        class_="command",
    )


# ------------------------------------------------------------------------------------ confidence


def _confidence(cause: PlacedCause, others: Sequence[PlacedCause], shown: frozenset[str]) -> Markup:
    reasons = sorted(cause.because, key=lambda one: -one.points)
    speaking_for = [one for one in reasons if one.points > 0]
    against = [one for one in reasons if one.points < 0]
    return element(
        "section",
        element("h3", "How sure"),
        _meter(cause.confidence),
        element("p", how_sure(cause), class_="sure"),
        _surer(cause),
        _reasons("For it", speaking_for, shown),
        _reasons("Against it", against, shown) if against else None,
        element("p", "Nothing that was seen speaks against it.", class_="faint")
        if speaking_for and not against
        else None,
        _candidates(others),
        class_="panel confidence",
    )


def _meter(share: float) -> Markup:
    """The confidence as a bar, with marks at the least of each word for it."""
    wide = 240
    return element(
        "svg",
        element("rect", width=wide, height="10", rx="3", class_="room"),
        element(
            "rect",
            width=f"{wide * min(max(share, 0.0), 1.0):.0f}",
            height="10",
            rx="3",
            class_="part",
        ),
        *(
            element("path", d=f"M{wide * least:.0f} 0 v10", class_="tick")
            for least in (0.6, 0.8, 0.95)
        ),
        viewbox=f"0 0 {wide} 10",
        preserveAspectRatio="none",
        class_="meter",
        aria_hidden="true",
    )


def _surer(cause: PlacedCause) -> Markup | None:
    """What is surer than the cause: the class that holds it."""
    held = [one for one in cause.classes if one.confidence > cause.confidence + 0.02]
    if not held or not cause.named:
        return None
    return element("p", f"Surer: {held[0].title}, {percent(held[0].confidence)}", class_="faint")


def _reasons(title: str, reasons: Sequence[Weighing], shown: frozenset[str]) -> Markup | None:
    if not reasons:
        return None
    return element(
        "div",
        element("h4", title),
        element("ul", *(_reason(one, shown) for one in reasons), class_="reasons"),
    )


def _reason(one: Weighing, shown: frozenset[str]) -> Markup:
    strength = min(26, abs(one.points))
    links = [
        element("a", name, href=f"#e-{name}")
        for name in one.evidence[:_IDS_CAP]
        if name in shown and name.isalnum()
    ]
    return element(
        "li",
        element(
            "svg",
            element("rect", width="26", height="6", rx="1", class_="room"),
            element("rect", width=strength, height="6", rx="1", class_="part"),
            width="26",
            height="6",
            class_="points for" if one.points > 0 else "points against",
            aria_hidden="true",
        ),
        element("b", f"{one.points:+d}", title="evidence points, in decibans"),
        element("span", prose(one.says)),
        element("span", *(joined(link, " ") for link in links), class_="ids") if links else None,
    )


def _candidates(others: Sequence[PlacedCause]) -> Markup | None:
    if not others:
        return None
    ordered = sorted(others, key=lambda one: (-one.confidence, one.id))
    return element(
        "details",
        element("summary", f"{len(ordered)} other {'cause' if len(ordered) == 1 else 'causes'}"),
        element(
            "ul",
            *(
                element("li", element("code", one.id), f" {percent(one.confidence)}")
                for one in ordered
            ),
            class_="plain",
        ),
        open=ordered[0].confidence >= 0.1,
    )


# ------------------------------------------------------------------------------ time and next step


def _side(report: Report) -> Markup | None:
    return joined(_next_steps(report), _time(report))


def _next_steps(report: Report) -> Markup | None:
    """What would settle what is open."""
    steps = [one for one in report.undecided if one.id != "cannot-look"]
    if not steps:
        return None
    items = []
    for one in steps[:6]:
        command, colon, why = one.would_settle.partition(": ")
        is_command = command.startswith("trainprobe ") and colon
        items.append(
            element("li", copied(command), element("p", why, class_="faint"))
            if is_command
            else element("li", one.would_settle)
        )
    return element(
        "section",
        element("h3", "Next step"),
        element("ul", *items, class_="plain next"),
        class_="panel next-step",
    )


def _time(report: Report) -> Markup | None:
    cost = report.killing
    if report.verdict == "healthy" and not report.advice:
        return None
    rows = [(end.what, end.says, end.source) for end in report.expiry]
    if cost is not None:
        age = f", {duration(cost.age_s)} old" if cost.age_s is not None else ""
        rows.append(
            (
                "newest checkpoint",
                f"{cost.checkpoint}{age}; {cost.says}" if cost.checkpoint else cost.says,
                "",
            )
        )
    if not rows and not report.advice:
        return None
    return element(
        "section",
        element("h3", "Time"),
        element("p", report.advice, class_="advice") if report.advice else None,
        element(
            "dl",
            *(
                element(
                    "div",
                    element("dt", what),
                    element("dd", says, element("small", source) if source else None),
                )
                for what, says, source in rows
            ),
            class_="times",
        ),
        class_="panel time-left",
    )
