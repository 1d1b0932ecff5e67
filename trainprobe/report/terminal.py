"""The same text with colour, where a terminal shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from trainprobe.report.lines import Line, Style, plain

if TYPE_CHECKING:
    from rich.text import Text

# Of the eight colours, those that can be read on a light background as on a dark one.
LOOKS: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "faint": "dim",
    "bad": "bold red",
    "warn": "bold magenta",
    "good": "bold green",
    "command": "bold blue",
}


def wants_colour(
    stream: IO[str], environment: Mapping[str, str], *, asked_not: bool = False
) -> bool:
    """Return whether `stream` gets colour: a terminal that can, without --no-color and without
    NO_COLOR (https://no-color.org).
    """
    if asked_not or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def show(lines: Sequence[Line], stream: IO[str], *, colour: bool) -> None:
    """Write `lines` to `stream`, each as it stands: no markup is read, nothing is wrapped again."""
    stream.write(rendered(lines, colour=colour))
    stream.flush()


def rendered(lines: Sequence[Line], *, colour: bool) -> str:
    """Return `lines` as one text, with the terminal's codes for colour where it is wanted."""
    if not colour:
        return "".join(f"{plain(line)}\n" for line in lines)
    import io

    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, force_terminal=True, markup=False, highlight=False, emoji=False)
    for line in lines:
        console.print(styled(line), soft_wrap=True)
    return text.getvalue()


def styled(line: Line) -> Text:
    """Return `line` as rich's text, whose content is never read as markup."""
    from rich.text import Text

    text = Text.assemble(*((piece.text, LOOKS[piece.style]) for piece in line))
    text.rstrip()
    return text
