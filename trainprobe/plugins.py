"""What other packages add: folders of probes and causes, found by entry point. One that does not load is named, never fatal.

`trainprobe.probes`: the entry point names a package or module whose folder holds the probes, or a str or Path that is one.
`trainprobe.causes`: it names a `Cause`, a module with `CAUSE`, or a list or tuple of causes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROBES, CAUSES = "trainprobe.probes", "trainprobe.causes"
_CAUSE = ("trainprobe.causes.cause", "Cause")
"""Causes are told by the name of their class: this module stands on the ground floor, below them."""


@dataclass(frozen=True)
class AddedProbes:
    """Folders with probes, and one sentence for each plugin that could not be used."""

    folders: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddedCauses:
    """Causes, and one sentence for each plugin that could not be used.

    `failures` fills while the causes are weighed: one sentence for each function of a plugin that raised.
    """

    causes: tuple[Any, ...] = ()
    trouble: tuple[str, ...] = ()
    failures: list[str] = field(default_factory=list)


def probe_folders() -> AddedProbes:
    """Return the folders that installed packages name, in a fixed order."""
    folders: dict[str, None] = {}
    trouble = []
    for entry in _entries(PROBES):
        try:
            folder = _folder(entry)
            if not os.path.isdir(folder):
                trouble.append(f"The {_named(entry)} adds no probes: {folder} is no folder.")
            else:
                folders[folder] = None
        except BaseException as error:  # noqa: BLE001 - a stranger's module may raise anything, SystemExit too
            _reraise(error)
            trouble.append(f"The {_named(entry)} adds no probes: {_said(error)}.")
    return AddedProbes(tuple(folders), tuple(trouble))


def causes(known: Collection[str] = ()) -> AddedCauses:
    """Return the causes that installed packages add. An id that stands in `known`, or that two packages claim, is left to the first."""
    kept: dict[str, Any] = {}
    failures: list[str] = []
    owner: dict[str, str] = dict.fromkeys(known, "trainprobe")
    trouble = []
    for entry in _entries(CAUSES):
        try:
            found = _causes_in(entry.load())
        except BaseException as error:  # noqa: BLE001 - a stranger's module may raise anything, SystemExit too
            _reraise(error)
            trouble.append(f"The {_named(entry)} adds no cause: {_said(error)}.")
            continue
        for cause in found:
            if cause.id in owner:
                trouble.append(f"The {_named(entry)} adds no {cause.id}: {owner[cause.id]} has a cause of that name already.")
                continue
            owner[cause.id] = f"the {_named(entry)}"
            kept[cause.id] = guarded(cause, failures, "of a plugin ")
    return AddedCauses(tuple(kept.values()), tuple(trouble), failures)


def guarded(cause: Any, failures: list[str], whose: str = "") -> Any:
    """Return `cause` with functions that cannot end the report: one that raises says nothing, and a sentence about it goes to `failures`."""

    def guard(name: str, otherwise: Callable[[Any], Any], read: Callable[[Any], Any] = lambda value: value) -> Callable[[Any, Any], Any]:
        function = getattr(cause, name)

        def call(facts: Any, group: Any) -> Any:
            try:
                return read(function(facts, group))
            except Exception as error:  # noqa: BLE001 - a stranger's function may raise anything
                sentence = f"The cause {cause.id} {whose}failed in its {name}: {_said(error)}."
                if sentence not in failures:
                    failures.append(sentence)
                return otherwise(group)

        return call

    return replace(
        cause,
        weigh=guard("weigh", lambda _: (), tuple),  # a generator raises only while it is read
        summary=guard("summary", lambda _: cause.title),
        fixes=guard("fixes", lambda _: (), tuple),
        ranks=guard("ranks", lambda group: group.ranks, tuple),
        pids=guard("pids", lambda _: (), tuple),
    )


def _entries(group: str) -> list[EntryPoint]:
    from importlib.metadata import entry_points

    return sorted(set(entry_points(group=group)), key=lambda entry: (entry.name, entry.value))


def _folder(entry: EntryPoint) -> str:
    """Find the folder without running the package where that can be: probes are programs, nothing has to be imported for them."""
    from importlib.util import find_spec

    if not entry.attr:
        spec = find_spec(entry.module)
        if spec is None:
            raise ModuleNotFoundError(f"there is no module {entry.module}")
        if spec.submodule_search_locations:
            return os.path.abspath(next(iter(spec.submodule_search_locations)))
        return os.path.dirname(os.path.abspath(spec.origin or ""))
    folder: str = os.fspath(entry.load())
    return os.path.abspath(folder)


def _causes_in(found: Any) -> tuple[Any, ...]:
    found = getattr(found, "CAUSE", found)
    items = tuple(found) if isinstance(found, Iterable) and not isinstance(found, (str, bytes)) else (found,)
    for item in items:
        if (type(item).__module__, type(item).__qualname__) != _CAUSE:
            raise TypeError(f"it names a {type(item).__name__}, not a Cause")
    return items


def _named(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist is not None else ""
    return f"plugin {entry.name} of {package}" if package else f"plugin {entry.name}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(": .")


def _reraise(error: BaseException) -> None:
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        raise error
