"""The output formats: one file each, called as the format is, and those of plugins."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.report.format import COMMANDS, Format, Subject

if TYPE_CHECKING:
    from trainprobe.plugins import Added


def find(name: str) -> Format | None:
    """Return the format called `name`, or None. One of ours is loaded alone: prologs are many."""
    if name in _names():
        return _load(name)
    return next((known for known in _added().found if known.name == name), None)


def every_format() -> tuple[Format, ...]:
    """Return all formats: text, then ours by name, then those of plugins."""
    names = sorted(_names(), key=lambda name: (name != "text", name))
    return (*map(_load, names), *_added().found)


def formats_of(subject: Subject) -> tuple[Format, ...]:
    """Return the formats that can render `subject`."""
    return tuple(known for known in every_format() if subject in known.renders)


def choose(subject: Subject, name: str | None, file: str | None = None) -> Format:
    """Return the format called `name`; without a name the one that `file` ends in, else text.

    Raises UsageError, with the formats to choose from, where it cannot render `subject`.
    """
    if name is None:
        fitting = (
            [known for known in formats_of(subject) if file.endswith(known.ending)] if file else []
        )
        return fitting[0] if fitting else _load("text")
    found = find(name)
    if found is not None and subject in found.renders:
        return found
    names = ", ".join(known.name for known in formats_of(subject))
    trouble = " ".join(_added().trouble)
    raise UsageError(
        f"--format {name[:20]!r} does not work with {', '.join(COMMANDS[subject])}.",
        f"These do: {names}. {trouble}".rstrip(),
    )


def failure_of(argv: Sequence[str], sentence: str) -> tuple[str, int] | None:
    """Return what stdout gets instead of a report, and the exit code, where `argv` asks for a
    format that has words for an error; else None.
    """
    name = ""
    for word, following in zip(argv, (*argv[1:], "")):
        if word == "--":
            break
        if word == "--format" or word.startswith("--format="):
            name = word.partition("=")[2] or following
    found = find(name) if name else None
    return found.failure(sentence) if found is not None and found.failure is not None else None


def _added() -> Added:
    from trainprobe import plugins  # a prolog has no time to look for them

    return plugins.formats(known=_names())


def _names() -> tuple[str, ...]:
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


def _load(name: str) -> Format:
    found = getattr(importlib.import_module(f"{__name__}.{name}"), "FORMAT", None)
    if not isinstance(found, Format) or found.name != name:
        raise TypeError(f"report/formats/{name}.py must hold one FORMAT with the name {name!r}")
    return found
