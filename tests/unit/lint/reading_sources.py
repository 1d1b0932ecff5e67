"""Programs made of texts."""

from __future__ import annotations

import textwrap

from tests.gallery.lint.score import as_asked
from trainprobe.lint.engine import findings_of
from trainprobe.lint.model import Finding
from trainprobe.lint.program import Program, Source


def program_of(**texts: str) -> Program:
    """Modules by name; `lib__dist` is lib/dist.py."""
    named = [(name.replace("__", "/"), textwrap.dedent(text)) for name, text in texts.items()]
    return Program([Source(f"at/{path}.py", text, path.replace("/", ".")) for path, text in named])


def found(**texts: str) -> list[Finding]:
    return findings_of(program_of(**texts))[0]


def asked(**texts: str) -> list[Finding]:
    """What is found by default and, of a rule that is a hint, its plain cases."""
    return as_asked(findings_of(program_of(**texts), hints=True)[0])


def lines_of(cause: str, **texts: str) -> list[int]:
    """The lines of a cause among what `asked` gives."""
    return [one.line for one in asked(**texts) if one.id == cause]
