"""The command line as data, read off the application itself: commands, their options, and the words
that an option or an argument takes. Completion and the manual page are made of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """One option or argument. `names` are empty for an argument; `metavar` is "" for a flag;
    `words` are the values that there are, where they can be listed.
    """

    names: tuple[str, ...]
    metavar: str
    says: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command for people. `usage` is what stands behind its name, `text` its whole help."""

    name: str
    short: str
    usage: str
    text: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]


def commands(app: typer.Typer) -> tuple[Command, ...]:
    """Return the commands that are not hidden, in the order of the help."""
    import typer.main

    group: Any = typer.main.get_command(app)
    return tuple(_command(one) for one in group.commands.values() if not one.hidden)


def _command(one: Any) -> Command:
    context = one.context_class(one, info_name=one.name)
    parameters = [part for part in one.params if not getattr(part, "hidden", False)]
    help_option = one.get_help_option(context)
    options = [part for part in parameters if part.param_type_name == "option"]
    options += [] if help_option is None or help_option in options else [help_option]
    return Command(
        one.name,
        one.get_short_help_str(200),
        _plain_usage(" ".join(one.collect_usage_pieces(context))),
        (one.help or "").strip(),
        tuple(_option(one.name, part) for part in options),
        tuple(_option(one.name, part) for part in parameters if part.param_type_name == "argument"),
    )


def _plain_usage(usage: str) -> str:
    """Without the brackets that are set around metavars which have their own."""
    usage = re.sub(r"\{([A-Z]+)(?:\.\.\.)?\}(\.\.\.)?", r"\1\2", usage)
    return re.sub(r"\[\[(.+?)\]\]", r"[\1]", usage)


def _option(command: str, part: Any) -> Option:
    argument = part.param_type_name == "argument"
    names = () if argument else tuple(sorted(part.opts, key=len))
    metavar = "" if getattr(part, "is_flag", False) else str(part.metavar or part.name.upper())
    words: tuple[str, ...] = ()
    if "--format" in names:
        words = _formats(command)
    elif argument and command in ("demo", "causes", "completion"):
        words = {"demo": _demos, "causes": _causes, "completion": _shells}[command]()
    return Option(names, metavar, " ".join((part.help or "").split()), words)


def _formats(command: str) -> tuple[str, ...]:
    from trainprobe.report.format import COMMANDS
    from trainprobe.report.formats import every_format

    subjects = {
        subject
        for subject, names in COMMANDS.items()
        if any(name.split()[0] == command for name in names)
    } or {"diagnosis"}
    return tuple(one.name for one in every_format() if subjects & set(one.renders))


def _demos() -> tuple[str, ...]:
    from trainprobe.demo.jobs import jobs

    return tuple(job.name for job in jobs())


def _causes() -> tuple[str, ...]:
    from trainprobe.causes import built

    return tuple(sorted(cause.id for cause in built()))


def _shells() -> tuple[str, ...]:
    return SHELLS
