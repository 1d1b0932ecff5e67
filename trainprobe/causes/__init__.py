"""The catalogue: causes that are weighed, one per file, and causes that are only known by name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING

from trainprobe.shipped import shipped

if TYPE_CHECKING:
    from trainprobe.causes.cause import Cause

FAMILIES = (
    "data_loading",
    "processes",
    "memory",
    "collectives",
    "network",
    "gpu",
    "software",
    "model",
)
"""The packages of causes, in the order of the catalogue."""


@dataclass(frozen=True)
class Planned:
    """A cause that is known by name and not weighed yet; it never takes part in a ranking."""

    id: str
    family: str
    means: str
    telling: str
    usual_fix: str


@functools.cache
def built() -> tuple[Cause, ...]:
    """Return every cause that is weighed, by family and then by name.

    Raises TypeError when a file of a family package does not hold exactly one `CAUSE` with an id of
    its own name.
    """
    return tuple(_load(family, name) for family, name in _files())


@functools.cache
def planned() -> tuple[Planned, ...]:
    """Return the causes of `catalogue.yaml`, in its order."""
    return tuple(
        Planned(cause_id, family, entry["means"], entry["telling"], entry["usual_fix"])
        for family, entries in shipped(__name__, "catalogue.yaml").items()
        for cause_id, entry in entries.items()
    )


def find(cause_id: str) -> Cause | Planned | None:
    """Return the cause with this id, built or planned; None for an unknown id."""
    everything: tuple[Cause | Planned, ...] = (*built(), *planned())
    return next((cause for cause in everything if cause.id == cause_id), None)


def family_of(cause_id: str) -> str:
    """Return the family of a cause, such as `data_loading`; empty for an unknown id."""
    for family, name in _files():
        if name == cause_id.replace("-", "_"):
            return family
    return next((cause.family for cause in planned() if cause.id == cause_id), "")


def page(cause_id: str) -> str:
    """Return the page of a built cause: the docstring of its file; empty for any other."""
    family = family_of(cause_id)
    name = cause_id.replace("-", "_")
    if (family, name) not in _files():
        return ""
    return (importlib.import_module(f"{__package__}.{family}.{name}").__doc__ or "").strip()


@functools.cache
def _files() -> tuple[tuple[str, str], ...]:
    found = []
    for family in FAMILIES:
        folder = resources.files(__package__).joinpath(family)
        found += [(family, module.name) for module in pkgutil.iter_modules([str(folder)])]
    return tuple(found)


def _load(family: str, name: str) -> Cause:
    from trainprobe.causes.cause import Cause
    from trainprobe.causes.readiness_signs import readied

    module = importlib.import_module(f"{__package__}.{family}.{name}")
    cause = getattr(module, "CAUSE", None)
    if not isinstance(cause, Cause) or cause.id != name.replace("_", "-"):
        raise TypeError(
            f"causes/{family}/{name}.py must hold one CAUSE with the id {name.replace('_', '-')}"
        )
    first, _, _ = (module.__doc__ or "").strip().partition("\n\n")
    return readied(replace(cause, means=" ".join(first.split())))
