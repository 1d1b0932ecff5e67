"""docs/formats.md, from the formats' own declarations."""

from __future__ import annotations

from collections.abc import Iterator

from docs.pages.causes import cell
from trainprobe.report.format import COMMANDS
from trainprobe.report.formats import every_format

INTRODUCTION = """\
# Output formats

`--format NAME` chooses what a command writes to stdout; without it that is the text.
Where stdout holds another format, the text goes to stderr; `--quiet` leaves it out.
`--output FILE` writes the format to FILE and the text to stdout. Without `--format`, the ending of FILE chooses the format.
`--json FILE` is short for `--format json --output FILE` and can stand beside another format; `--json -` is `--format json`.

All formats are written from one report and never disagree: tests hold them together over every saved case.
To add one, follow [the guide](guides/add-a-format.md).
"""


def pages() -> Iterator[tuple[str, str]]:
    """Give the file name under docs/ and its text."""
    lines = [
        INTRODUCTION,
        "| format | what it is for | file ending | commands |",
        "|---|---|---|---|",
    ]
    for one in every_format():
        commands = [f"`{name}`" for subject in one.renders for name in COMMANDS[subject]]
        lines.append(
            f"| `{one.name}` | {cell(one.title)} | `{one.ending}` | {', '.join(commands)} |"
        )
    own = ", ".join(f"`{one.name}`" for one in every_format() if one.exit_code is not None)
    lines += [
        "",
        (
            f"With {own} on stdout the command ends with the format's own exit codes;"
            " with all others these are [trainprobe's](exits.md)."
        ),
    ]
    yield "formats.md", "\n".join(lines) + "\n"
