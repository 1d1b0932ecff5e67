"""docs/field-cases.md: the prose of field_cases.txt, with what tests/gallery/small found in
place of each {name}.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from tests.gallery.small.stories import RESULTS, STORIES, Story

PROSE = Path(__file__).with_name("field_cases.txt")
OUTCOMES = {"found": "found and healed", "missed": "missed"}


def pages() -> list[tuple[str, str]]:
    """Return the page, made from the stories and their results."""
    kept = (
        {row["name"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["stories"]}
        if RESULTS.exists()
        else {}
    )
    rows = {
        story.name: kept.get(story.name, {"outcome": "not run", "why": []}) for story in STORIES
    }
    text = (
        PROSE.read_text(encoding="utf-8")
        .replace("{table}", _table(rows))
        .replace("{where}", _where(rows))
    )
    for story in STORIES:
        mark = f"{{{story.name}}}"
        if mark not in text:
            raise ValueError(f"{PROSE.name} has no place {mark}")
        text = text.replace(mark, _told(story, rows[story.name]))
    return [("field-cases.md", text)]


def _table(rows: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| case | broken: first cause | confidence | took | mended | took | outcome |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        ill, well = row.get("broken") or {}, row.get("mended") or {}
        cells = (
            [
                f"`{ill.get('cause') or 'none'}`",
                f"{ill.get('confidence', 0):.2f}",
                f"{ill.get('took_s', 0):.0f} s",
            ]
            if ill
            else ["", "", ""]
        )
        cells += [well.get("verdict", ""), f"{well.get('took_s', 0):.0f} s"] if well else ["", ""]
        lines.append(f"| {name} | {' | '.join(cells)} | {_outcome(row)} |")
    return "\n".join(lines)


def _outcome(row: dict[str, Any]) -> str:
    why = "; ".join(row.get("why", []))
    said = str(row["outcome"])
    return OUTCOMES.get(said, said) + (f": {why}" if why else "")


def _told(story: Story, row: dict[str, Any]) -> str:
    """The command, the surroundings and what came out."""
    limits = [f"ulimit -n {story.nofile}"] if story.nofile else []
    limits += [f"# in a control group with {story.memory_mib} MiB"] if story.memory_mib else []
    limits += (
        [f"# {story.left} processes are left of: {shlex.join(story.earlier)}"]
        if story.earlier
        else []
    )
    typed = " ".join(
        word if word in ("{rows}", "{ranks}") else shlex.quote(word) for word in story.words
    )
    shown = "\n".join([*limits, f"trainprobe diagnose {typed}"])
    said = [f"`{story.name}`: {story.tells}. Expected `{story.cause}`; {_outcome(row)}."]
    if row.get("fix"):
        said.append(
            f"The fix in the report that was applied: *{row['fix']}* (`{story.applied.strip()}`)."
        )
    return "\n".join(
        [*said, *([story.stand_in] if story.stand_in else []), "", "```console", shown, "```"]
    )


def _where(rows: dict[str, dict[str, Any]]) -> str:
    ran = [row for row in rows.values() if row.get("platform")]
    if not ran:
        return "Nothing was run yet: `make small`."
    places = sorted(
        {f"{row['platform']}, {row['cores']} cores, Python {row['python']}" for row in ran}
    )
    versions = sorted(
        {f"{name} {number}" for row in ran for name, number in row["versions"].items()}
    )
    days = sorted({row["day"] for row in ran})
    return "\n".join(
        [
            f"- {'; '.join(places)}; no GPU.",
            f"- {', '.join(versions)}.",
            (
                f"- {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}. Times are of a whole"
                " call, start-up included, and of a machine that may have had other work."
            ),
        ]
    )
