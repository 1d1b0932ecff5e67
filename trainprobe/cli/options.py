"""The options that several commands share."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer

from trainprobe.report.format import Subject

Case = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where the evidence goes; a new folder here by default."),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write it to FILE, and the text to stdout; FILE's ending can stand for --format.",
    ),
]
JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for stdout."),
]
HtmlFile = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write the report as a page for a browser."),
]
ShareFile = Annotated[
    str | None,
    typer.Option(
        "--share",
        metavar="FILE",
        help="Write the report for strangers: stand-ins for hosts, users, folders and addresses;"
        " FILE.ledger, for you alone, says which is which.",
        show_default=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress; only the headline and the head of the first cause."
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Add the ids of the evidence behind each reason."),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colour; the words are the same.")]


def option(metavar: str, says: str, *names: str) -> Any:
    """Return an option with a value. Without `names` it is called like its parameter."""
    return typer.Option(*names, metavar=metavar, help=says, show_default=False)


def flag(says: str, *names: str) -> Any:
    """Return an option without a value, off by default."""
    return typer.Option(*names, help=says)


def format_option(*subjects: Subject) -> Any:
    """Return the option `--format`, whose help names the formats that can render `subjects`."""
    return typer.Option(
        "--format", metavar="NAME", help=f"On stdout: {_formats_of(subjects)}. [default: text]"
    )


@functools.cache
def _formats_of(subjects: tuple[Subject, ...]) -> str:
    """Typer evaluates an option four times; the formats are read once."""
    from trainprobe.report.formats import formats_of

    found = [known for subject in subjects for known in formats_of(subject)]
    return ", ".join(dict.fromkeys(known.name for known in found))
