"""docs/cli.md, settings.md, exits.md, report.md and the JSON Schema, from the code that obeys
them.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterator
from typing import Any

from docs.pages.causes import cell
from trainprobe.cli.app import app, command_names, help_of
from trainprobe.cli.exit_codes import MEANINGS, code_of
from trainprobe.cli.manual import manual
from trainprobe.config import FILE_NAME, setting_rows
from trainprobe.model.diagnosis import Report, Verdict
from trainprobe.report.schema import docstring_of, kind_in_words, schema_text, shapes_of

KINDS = {
    "ranks": "whole number",
    "names": "list of names",
    "seconds": "seconds",
    "seconds-by-name": "seconds for each rung",
    "numbers-by-name": "number for each measure",
    "yes-or-no": "true or false",
}


def pages() -> Iterator[tuple[str, str]]:
    """Give file names under docs/ and their text."""
    yield "cli.md", _cli()
    yield "exits.md", _exits()
    yield "settings.md", _settings()
    yield "report.md", _report()


def commands() -> str:
    """Return the table of the commands for people, each with its line of `trainprobe --help`."""
    rows = ["| command | what it does |", "|---|---|"]
    for name, one in zip(command_names(), app.registered_commands, strict=True):
        if one.hidden:
            continue
        says = one.short_help or str(getattr(one.callback, "__doc__", "")).strip().split("\n")[0]
        rows.append(f"| [`trainprobe {name}`](docs/cli.md#{name}) | {cell(says)} |")
    return "\n".join(rows) + "\n"


def manual_page() -> str:
    """Return the text of docs/trainprobe.1."""
    return manual(app)


def schema() -> str:
    """Return the text of docs/report.schema.json."""
    return schema_text()


def _cli() -> str:
    lines = [
        "# The command line",
        "",
        (
            "Progress goes to stderr and results to stdout; `--json -` puts JSON alone on stdout"
            " and the text on stderr. Other formats: [formats.md](formats.md)."
        ),
        (
            "On a terminal the climb is shown live, elsewhere in plain lines; colour obeys"
            " `--no-color` and `NO_COLOR`."
        ),
        (
            "`--quiet` shows no progress and leaves the headline, the first cause of each suspect"
            " group, its summary and the first thing to do."
        ),
        (
            "Exit codes: [exits.md](exits.md). Settings: [settings.md](settings.md). What the JSON"
            " holds: [report.md](report.md)."
        ),
        "",
        "```",
        help_of().rstrip(),
        "```",
        "",
    ]
    for name in command_names():
        lines += [f"## {name}", "", "```", help_of(name).rstrip(), "```", ""]
    return "\n".join(lines)


def _exits() -> str:
    lines = ["# Exit codes", "", "| code | what it says |", "|---|---|"]
    lines += [f"| {code} | {says} |" for code, says in MEANINGS.items()]
    lines += ["", "By verdict:", "", "| verdict | conclusive | not conclusive |", "|---|---|---|"]
    for verdict in typing.get_args(Verdict):
        lines.append(
            f"| {verdict} | {code_of(verdict, conclusive=True)} |"
            f" {code_of(verdict, conclusive=False)} |"
        )
    lines += [
        "",
        "Health that is not conclusive is not claimed.",
        "A rung that does not apply, or that you left out, does not spoil it.",
    ]
    return "\n".join(lines) + "\n"


def _settings() -> str:
    rows = setting_rows()
    lines = [
        "# Settings",
        "",
        (
            f"`trainprobe diagnose` reads `{FILE_NAME}` in the current folder, or the file that"
            " `--config` names."
        ),
        "The command line wins over it.",
        "A wrong key or value is named with its file and line, and nothing is started.",
        "",
        "| key | kind | default | what it does |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{row.key}` | {KINDS[row.kind]} | {_default(row.default)} | {cell(row.says)} |"
        for row in rows
    ]
    lines += [
        "",
        (
            "A threshold holds for every measure of that name, or for one rung's alone:"
            " `gloo_control.init_s`."
        ),
    ]
    lines += [
        (
            "The names stand in the report under `ladder`, `measures`; one that no rung measures "
            "has no"
            " effect."
        )
    ]
    lines += ["", "All of them in one file:", "", "```yaml", *_example(), "```"]
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _example() -> list[str]:
    examples = {
        "ranks": "4",
        "names": "[torch, numpy]",
        "seconds-by-name": "{gloo_control: 30}",
        "yes-or-no": "true",
    }
    rungs = {
        "rungs.only": "[host, user_script]",
        "rungs.skip": "[scaled_dataset]",
        "timeouts.total_s": "300",
    }
    rungs |= {
        "thresholds.at_most": "{gloo_control.init_s: 10}",
        "thresholds.at_least": "{matmul_gflops: 0.5}",
    }
    lines: list[str] = []
    for section, group in itertools.groupby(
        setting_rows(), key=lambda row: row.key.rpartition(".")[0]
    ):
        if section:
            lines.append(f"{section}:")
        for row in group:
            shown = rungs.get(row.key) or examples.get(row.kind) or f"{row.default:g}"
            lines.append(f"{'  ' if section else ''}{row.key.rpartition('.')[2]}: {shown}")
    return lines


def _report() -> str:
    lines = [
        "# The report as JSON",
        "",
        "`--json FILE` writes the report, and every case holds it as `diagnosis.json`.",
        (
            "Its form is `trainprobe.report/1`; the [JSON Schema](report.schema.json) is made from"
            " the same types as this page."
        ),
        "A newer version may add fields; those that stand here keep their name and meaning.",
        "For people the same report is [a page for a browser](page.md): `--html FILE`.",
        "",
    ]
    for kind in shapes_of(Report):
        lines += [f"## {kind.__name__}", ""]
        if says := docstring_of(kind):
            lines += [says, ""]
        hints = typing.get_type_hints(kind)
        lines += ["| field | type |", "|---|---|"]
        lines += [
            f"| `{one.name}` | {kind_in_words(hints[one.name])} |"
            for one in dataclasses.fields(kind)
            if one.name != "extra"
        ]
        lines.append("")
    return "\n".join(lines)
