"""docs/causes/: a page for every cause that is weighed, with the report of its own fixture as
the example, and the index of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.causes.fixtures import load
from trainprobe import causes
from trainprobe.causes.cause import Cause
from trainprobe.causes.priors import load_priors
from trainprobe.cli.catalogue_pages import FAMILY_TITLES, UNKNOWN_PAGE, weighed_rows
from trainprobe.model.diagnosis import PlacedCause
from trainprobe.ranking import rank_group
from trainprobe.report.cause_section import cause_lines
from trainprobe.report.lines import plain

WIDTH = 100


def pages() -> Iterator[tuple[str, str]]:
    """Give file names under docs/ and their text."""
    yield "causes/index.md", _index()
    yield "causes/unknown.md", _unknown()
    for cause in causes.built():
        yield f"causes/{cause.id}.md", _page(cause)


def escaped(text: str) -> str:
    """Return `text` with its placeholders such as <PID> kept: Markdown takes them for HTML."""
    return text.replace("<", "&lt;")


def cell(text: str) -> str:
    """Return `text` as a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _page(cause: Cause) -> str:
    story = causes.page(cause.id) or cause.means
    lines = [
        f"# {cause.id}",
        "",
        f"**{cause.title}.**",
        "",
        story,
        "",
    ]
    lines += [
        f"- {label}: {_linked(says) if label == 'stands before' else escaped(says)}"
        for label, says in weighed_rows(cause)
    ]
    lines += [
        "",
        "## How it looks in a report",
        "",
        "From the facts of its own test fixture:",
        "",
        "```",
        *_example(cause),
        "```",
    ]
    lines += [
        "",
        (
            f"Family: {FAMILY_TITLES.get(causes.family_of(cause.id), '')}. [All causes](index.md) ·"
            f" `trainprobe causes {cause.id}`"
        ),
    ]
    return "\n".join(lines) + "\n"


def _example(cause: Cause) -> list[str]:
    placed = _placed(cause)
    return [plain(line) for line in cause_lines(placed, 1, WIDTH)]


def _placed(cause: Cause) -> PlacedCause:
    fixture = load(cause.id, "fires")
    ranked = rank_group(fixture.facts, fixture.group, causes.built(), load_priors())
    found = next((placed for placed in ranked.placed if placed.id == cause.id), None)
    if found is None:
        raise ValueError(
            f"tests/causes/{cause.id}/fires.yaml does not bring {cause.id} into the ranking"
        )
    return found


def _unknown() -> str:
    title, story, telling = UNKNOWN_PAGE
    return (
        f"# unknown\n\n**{title}.**\n\n{story}\n\nTold by: {telling}.\n\n[All causes](index.md)\n"
    )


def _index() -> str:
    built, planned = causes.built(), causes.planned()
    lines = [
        "# The causes",
        "",
        "A cause is an illness that somebody can cure.",
        (
            'A symptom ("NCCL timeout") or the echo of another rank\'s death ("connection closed by'
            ' peer") is never one.'
        ),
        (
            f"{len(built)} are weighed; {len(planned)} more are known by name, are not weighed yet"
            " and never stand in a ranking."
        ),
        "[`unknown`](unknown.md) stands in a ranking where nothing in the catalogue fits.",
        "",
    ]
    for family in dict.fromkeys((*FAMILY_TITLES, *causes.FAMILIES)):
        some = [cause for cause in built if causes.family_of(cause.id) == family]
        if some:
            lines += [
                f"## {FAMILY_TITLES.get(family, family)}",
                "",
                "| id | what it means |",
                "|---|---|",
            ]
            lines += [f"| {_linked(cause.id)} | {cell(cause.means)} |" for cause in some]
            lines.append("")
    lines += [
        "## Known by name, not weighed yet",
        "",
        "| id | what it means | told by | usual fix |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{one.id}` | {cell(one.means)} | {cell(one.telling)} | {cell(one.usual_fix)} |"
        for one in planned
    ]
    return "\n".join(lines) + "\n"


def _linked(cause_id: str) -> str:
    return f"[`{cause_id}`]({cause_id}.md)"
