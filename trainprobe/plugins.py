"""What other packages add: folders of probes, collectors, causes and output formats, found by entry
point. One that does not load is named, never fatal.

`trainprobe.probes`: the entry point names a package or module whose folder holds the probes, or a
str or Path that is one.
`trainprobe.collectors`: it names a `Collector`, a module with `COLLECTOR`, or a list or tuple.
`trainprobe.causes`: it names a `Cause`, a module with `CAUSE`, or a list or tuple of causes.
`trainprobe.formats`: it names a `Format`, a module with `FORMAT`, or a list or tuple of formats.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROBES, COLLECTORS = "trainprobe.probes", "trainprobe.collectors"
CAUSES, FORMATS = "trainprobe.causes", "trainprobe.formats"
_CLASS_OF = {
    COLLECTORS: ("trainprobe.collect.collector", "Collector"),
    CAUSES: ("trainprobe.causes.cause", "Cause"),
    FORMATS: ("trainprobe.report.format", "Format"),
}
"""Values are recognised by the name of their class: this module may not import those classes."""


@dataclass(frozen=True)
class Added:
    """What plugins add (folders of probes, collectors, causes or formats), and one sentence for
    each plugin that could not be used.

    `failures` fills while causes are weighed: one sentence for each function that raised.
    """

    found: tuple[Any, ...] = ()
    trouble: tuple[str, ...] = ()
    failures: list[str] = field(default_factory=list)


def probe_folders() -> Added:
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
            trouble.append(f"The {_named(entry)} adds no probes: {_text(error)}.")
    return Added(tuple(folders), tuple(trouble))


def collectors(known: Collection[str] = ()) -> Added:
    """Return the collectors that installed packages add. A kind that stands in `known`, or that
    two packages claim, is left to the first.
    """
    return _added(COLLECTORS, known, lambda added: str(added.kind))


def causes(known: Collection[str] = ()) -> Added:
    """Return the causes that installed packages add. An id that stands in `known`, or that two
    packages claim, is left to the first.
    """
    added = _added(CAUSES, known, lambda cause: str(cause.id))
    kept = tuple(guarded(cause, added.failures, "of a plugin ") for cause in added.found)
    return replace(added, found=kept)


def formats(known: Collection[str] = ()) -> Added:
    """Return the output formats that installed packages add, by the same rule."""
    return _added(FORMATS, known, lambda added: str(added.name))


def _added(group: str, known: Collection[str], name_of: Callable[[Any], str]) -> Added:
    noun = _CLASS_OF[group][1].lower()
    found: list[Any] = []
    owner: dict[str, str] = dict.fromkeys(known, "trainprobe")
    trouble = []
    for entry in _entries(group):
        try:
            values = _values_in(entry.load(), group)
        except BaseException as error:  # noqa: BLE001 - a stranger's module may raise anything, SystemExit too
            _reraise(error)
            trouble.append(f"The {_named(entry)} adds no {noun}: {_text(error)}.")
            continue
        for value in values:
            name = name_of(value)
            if name in owner:
                trouble.append(
                    f"The {_named(entry)} adds no {name}: {owner[name]} has a {noun} of that name"
                    " already."
                )
                continue
            owner[name] = f"the {_named(entry)}"
            found.append(value)
    return Added(tuple(found), tuple(trouble))


def guarded(cause: Any, failures: list[str], whose: str = "") -> Any:
    """Return `cause` with functions that cannot end the report: one that raises counts as
    silent, and a sentence about it goes to `failures`.
    """

    def guard(
        name: str, otherwise: Callable[[Any], Any], read: Callable[[Any], Any] = lambda value: value
    ) -> Callable[[Any], Any]:
        function = getattr(cause, name)

        def call(scene: Any) -> Any:
            try:
                return read(function(scene))
            except Exception as error:  # noqa: BLE001 - a stranger's function may raise anything
                what = name.removesuffix("_for")
                sentence = f"The cause {cause.id} {whose}failed in its {what}: {_text(error)}."
                if sentence not in failures:
                    failures.append(sentence)
                return otherwise(scene)

        return call

    return replace(
        cause,
        weigh=guard("weigh", lambda _: (), tuple),  # a generator raises only while it is read
        summary=guard("summary", lambda _: cause.title),
        fixes=guard("fixes_for", lambda _: (), tuple),
        ranks=guard("ranks", lambda scene: scene.ranks, tuple),
        pids=guard("pids", lambda _: (), tuple),
    )


def _entries(group: str) -> list[EntryPoint]:
    found = [entry for entry in _installed(tuple(sys.path)) if entry.group == group]
    return sorted(set(found), key=lambda entry: (entry.name, entry.value))


@functools.lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Every entry point of trainprobe that the packages on `path` name: reading them takes longer
    than judging a small case, and each group asks.
    """
    if not any(map(_may_name_one, path)):
        return ()
    from importlib.metadata import entry_points

    found: Any = entry_points()
    if isinstance(found, dict):  # by group, before Python 3.12; its own `values` warns
        found = [entry for entries in dict.values(found) for entry in entries]
    return tuple(entry for entry in found if entry.group.startswith("trainprobe."))


def _may_name_one(folder: str) -> bool:
    """Whether a package there has an entry point of ours; true where only importlib can tell, as
    in a zip file. The import alone of importlib.metadata takes ten times as long.
    """
    try:
        with os.scandir(folder or os.curdir) as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")) and entry.is_dir():
                    with (
                        contextlib.suppress(FileNotFoundError),
                        open(os.path.join(entry.path, "entry_points.txt"), "rb") as file,
                    ):
                        if b"[trainprobe." in file.read():
                            return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _folder(entry: EntryPoint) -> str:
    """Find the folder, where possible without importing the package: probes are programs."""
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


def _values_in(found: Any, group: str) -> tuple[Any, ...]:
    kind = _CLASS_OF[group]
    found = getattr(found, kind[1].upper(), found)
    many = isinstance(found, Iterable) and not isinstance(found, (str, bytes))
    items = tuple(found) if many else (found,)
    for item in items:
        if (type(item).__module__, type(item).__qualname__) != kind:
            raise TypeError(f"it names a {type(item).__name__}, not a {kind[1]}")
    return items


def _named(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist is not None else ""
    return f"plugin {entry.name} of {package}" if package else f"plugin {entry.name}"


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(": .")


def _reraise(error: BaseException) -> None:
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        raise error
