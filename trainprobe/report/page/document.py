"""The whole page: head with the policy, navigation, the sections whose data exist, the script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from trainprobe.model.diagnosis import Report
from trainprobe.model.node_names import folded
from trainprobe.report.extra import text_of as text_in
from trainprobe.report.lines import Line, plain
from trainprobe.report.page.answer import answer_section
from trainprobe.report.page.before_and_after import comparison_section
from trainprobe.report.page.bounds import bounded
from trainprobe.report.page.collective_timeline import collective_section
from trainprobe.report.page.evidence_browser import evidence_section
from trainprobe.report.page.exhibits import NOTHING, Exhibits
from trainprobe.report.page.import_waterfall import import_section
from trainprobe.report.page.log_timeline import log_section
from trainprobe.report.page.markup import Markup, element, joined, lines_markup
from trainprobe.report.page.open_ends import open_ends_section
from trainprobe.report.page.rank_grid import rank_grid_section
from trainprobe.report.page.rungs import climb_section, ladder_section
from trainprobe.report.page.scaling_charts import scaling_section
from trainprobe.report.page.stack_tree import stack_tree_section
from trainprobe.report.page.wait_graph_drawing import wait_graph_section
from trainprobe.report.phrases import duration
from trainprobe.report.readiness_section import readiness_lines
from trainprobe.report.sbatch_section import sbatch_lines
from trainprobe.report.suite_section import suite_lines
from trainprobe.report.text import headline, text_of

if TYPE_CHECKING:
    from trainprobe.lint.output import LintResult

_WIDE = 100


def page_of(report: Report, exhibits: Exhibits = NOTHING) -> str:
    """Return the page of `report`. Without `exhibits` it shows what the report itself holds."""
    report = bounded(report)
    shown = frozenset(one.id for one in exhibits.raw)
    sections: list[tuple[str, str, Markup | None]] = [
        ("answer", "Answer", answer_section(report, exhibits.sites, shown)),
        ("against", "Then and now", comparison_section(report)),
        ("waits", "Waits", wait_graph_section(report)),
        ("ready", "Readiness", _as_text("ready", "Readiness", _of_nodes, report)),
        ("ranks", "Ranks", rank_grid_section(report)),
        ("stacks", "Stacks", stack_tree_section(report)),
        ("collectives", "Collectives", collective_section(report, exhibits.calls)),
        ("climb", "Climb", climb_section(report)),
        ("ladder", "Ladder", ladder_section(report, exhibits.deadlines)),
        ("suites", "Suites", _as_text("suites", "Suites", _of_suites, report)),
        ("scaling", "Planned size", scaling_section(report)),
        ("imports", "Imports", import_section(exhibits.imports)),
        ("logs", "Logs", log_section(report)),
        ("also", "Also", open_ends_section(report)),
        ("evidence", "Evidence", evidence_section(exhibits)),
        ("text", "Text", _text(report)),
    ]
    title = " ".join(plain(line) for line in headline(report)[:2])
    return document(title, _about(report), [one for one in sections if one[2] is not None])


def answer_page(report: Report) -> str:
    """Return a page with the answer alone, from what the report itself holds."""
    report = bounded(report)
    title = " ".join(plain(line) for line in headline(report)[:2])
    answer = answer_section(report, (), frozenset())
    return document(title, _about(report), [("answer", "Answer", answer)])


def findings_page(result: LintResult) -> str:
    """Return the page of what lint found."""
    from trainprobe.lint.output import as_lines

    lines = "\n".join(as_lines(result))
    body = element("section", element("pre", lines_markup(lines), class_="text"), id="findings")
    return document("trainprobe lint", "trainprobe lint", [("findings", "Findings", body)])


def document(title: str, about: str, sections: Sequence[tuple[str, str, Markup | None]]) -> str:
    """Return a page with these (id, name in the navigation, content)."""
    style, script = _shipped("page.css"), _shipped("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    links = [element("a", name, href=f"#{name_id}") for name_id, name, _ in sections]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        Markup('<link rel="icon" href="data:,">'),
        element("title", title),
        Markup(f"<style>{style}</style>"),
    )
    body = element(
        "body",
        element("a", "To the answer", href="#main", class_="skip"),
        element(
            "header",
            element("div", element("b", "trainprobe", class_="brand"), element("span", about)),
            element(
                "button",
                "Theme: system",
                type="button",
                id="theme",
                class_="script-only",
                aria_label="Theme: system. Change it.",
            ),
            class_="top",
        ),
        element("nav", *links, aria_label="Sections") if len(links) > 1 else None,
        element("main", *(content for _, _, content in sections), id="main", tabindex="-1"),
        element("p", id="spoken", class_="spoken", role="status"),
        Markup(f"<script>{script}</script>"),
    )
    return f'<!doctype html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def _about(report: Report) -> str:
    pid = report.extra.get("pid")
    reach = text_in(report.extra, "reach")[:120].removeprefix("trainprobe ")
    parts = [reach or (f"{report.command} {pid}" if isinstance(pid, int) else report.command)]
    form = text_in(report.extra, "form")
    parts += [form] if form not in ("", "none") else []
    hosts = list(dict.fromkeys(row.host for row in report.world.ranks if row.host))
    if report.world.size:
        size = f"{report.world.size:,} {'rank' if report.world.size == 1 else 'ranks'}"
        on = f" on {folded(hosts)}" if len(hosts) == 1 else f" on {len(hosts)} hosts"
        parts.append(f"{size}{on if hosts else ''}")
    parts += [f"looked for {duration(report.looked_s)}"] if report.looked_s else []
    parts.append(f"version {report.tool.version}")
    parts += [f"case {report.case}"] if report.case else []
    return " · ".join(parts)


def _of_nodes(report: Report) -> list[Line]:
    return sbatch_lines(report, _WIDE) or readiness_lines(report, _WIDE)


def _of_suites(report: Report) -> list[Line]:
    return suite_lines(report.ladder, _WIDE)


def _as_text(
    name: str, title: str, lines_of: Callable[[Report], list[Line]], report: Report
) -> Markup | None:
    lines = lines_of(report)
    if not lines:
        return None
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        element(
            "pre",
            *(joined(lines_markup(plain(line)), Markup("\n")) for line in lines),
            class_="text",
            tabindex="0",
        ),
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _text(report: Report) -> Markup:
    return element(
        "section",
        element("h2", "As text", id="text-title"),
        element(
            "details",
            element("summary", "The report as the terminal shows it, for a ticket or a mail"),
            element(
                "div",
                element("pre", lines_markup(text_of(report)), class_="text", id="report-text"),
                element(
                    "button",
                    "Copy",
                    type="button",
                    data_copy=True,
                    aria_label="Copy the report",
                    class_="copy script-only",
                ),
                class_="command",
            ),
        ),
        id="text",
        aria_labelledby="text-title",
    )


@lru_cache
def _shipped(name: str) -> str:
    return resources.files("trainprobe.report.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
