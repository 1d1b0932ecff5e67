"""The manual page, trainprobe(1), from the command line itself: docs/trainprobe.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainprobe import __version__
from trainprobe.cli.described import Command, Option, commands
from trainprobe.cli.exit_codes import MEANINGS

if TYPE_CHECKING:
    import typer


def manual(app: typer.Typer) -> str:
    """Return the page in the man macros (man(7)), with a final newline."""
    known = commands(app)
    lines = [
        '.\\" This page is generated: python docs/generate.py',
        f'.TH TRAINPROBE 1 "" "trainprobe {__version__}" "User Commands"',
        ".SH NAME",
        "trainprobe \\- find the rank, the cause and the fix of a training job that hangs",
        ".SH SYNOPSIS",
        *(f".B trainprobe {one.name}\n{_text(one.usage)}\n.br" for one in known),
        ".SH DESCRIPTION",
        "Finds the rank, the cause and the fix of a PyTorch training job that hangs, crashes",
        "or does not start.",
        "The report says what to type next.",
        ".SH COMMANDS",
    ]
    for one in known:
        lines += _command(one)
    lines += [".SH EXIT STATUS"]
    for code, says in MEANINGS.items():
        lines += [".TP", f".B {code}", _text(says)]
    lines += [
        ".SH ENVIRONMENT",
        ".TP",
        ".B NO_COLOR",
        "No colour, as \\-\\-no\\-color.",
        ".TP",
        ".B TRAINPROBE_PY_SPY",
        "The py\\-spy to use.",
    ]
    return "\n".join(lines) + "\n"


def _command(one: Command) -> list[str]:
    lines = [f".SS trainprobe {one.name} {_text(one.usage)}"]
    verbatim = False
    for line in one.text.splitlines():
        if line.strip() == "\b":
            verbatim = True
            lines += [".PP", ".nf"]
        elif not line.strip():
            lines += [".fi"] if verbatim else []
            lines.append(".PP")
            verbatim = False
        else:
            lines.append(_text(line if verbatim else line.strip()))
    lines += [".fi"] if verbatim else []
    for part in (*one.arguments, *one.options):
        lines += _option(part)
    return lines


def _option(part: Option) -> list[str]:
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in part.names)
    value = f"\\fI{_text(part.metavar)}\\fR" if part.metavar else ""
    return [".TP", " ".join(filter(None, (names, value))), _text(part.says) or "\\&"]


def _text(text: str) -> str:
    """Nothing in it is a request or an escape; a dash can be copied as one."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped
