"""Write the generated pages of docs/ and the table of commands in README.md; `--check` only says
which are stale.

    python docs/generate.py [--check]

Every page is made from what the tool itself uses: causes and their fixtures, probe headers, the
command line's help, the report's types, the settings, the exit codes. Nothing here is written
twice.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
MADE = "<!-- This page is generated: python docs/generate.py -->\n\n"
BEGIN, END = "<!-- commands: generated from here -->", "<!-- commands: to here -->"
sys.path.insert(0, str(ROOT))

from docs.pages import (  # noqa: E402 - the repository has to be on the path first
    accuracy,
    causes,
    checks,
    field_cases,
    formats,
    isolation,
    ladder,
    lint_precision,
    nodes,
    predictions,
    reference,
    sbatch,
    slots,
)


def pages() -> dict[Path, str]:
    """Return every generated file with its text."""
    made = {
        DOCS / name: MADE + text
        for name, text in (
            *causes.pages(),
            *checks.pages(),
            *ladder.pages(),
            *lint_precision.pages(),
            *reference.pages(),
            *accuracy.pages(),
            *predictions.pages(),
            *field_cases.pages(),
            *formats.pages(),
            *isolation.pages(),
            *nodes.pages(),
            *slots.pages(),
            *sbatch.pages(),
        )
    }
    made[DOCS / "report.schema.json"] = reference.schema()
    made[DOCS / "trainprobe.1"] = reference.manual_page()
    made[README] = readme(README.read_text(encoding="utf-8"))
    return made


def readme(text: str) -> str:
    """Return the README with the table between its two marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference.commands()}{END}{after}"


def orphans(made: dict[Path, str]) -> list[Path]:
    """Return pages of causes that are no more."""
    return [path for path in sorted((DOCS / "causes").glob("*.md")) if path not in made]


def stale() -> list[str]:
    """Return one sentence for each page that is not what it would be if it were made now."""
    made = pages()
    said = [f"{path.relative_to(ROOT)} is missing" for path in made if not path.exists()]
    said += [
        f"{path.relative_to(ROOT)} is stale"
        for path, text in made.items()
        if path.exists() and path.read_text(encoding="utf-8") != text
    ]
    return said + [f"{path.relative_to(ROOT)} belongs to no cause" for path in orphans(made)]


def write() -> None:
    """Write every page and remove those of causes that are no more."""
    made = pages()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in orphans(made):
        path.unlink()


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 where --check found a stale page."""
    if "--check" not in arguments:
        write()
        return 0
    said = stale()
    sys.stderr.write("".join(f"{one}; run: make docs\n" for one in said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
