"""Data files that come with trainprobe, as YAML."""

from __future__ import annotations

from importlib import resources
from typing import Any


def shipped(package: str, *names: str) -> Any:
    """Return what the YAML file `names` (a path) below the package holds.

    libyaml's reader, where PyYAML was built with it, takes a tenth of the time.
    """
    return read_yaml(resources.files(package).joinpath(*names).read_text(encoding="utf-8"))


def read_yaml(text: str) -> Any:
    """Return what a text of our own holds; what others wrote is read where its errors are told."""
    import yaml  # the start-up of commands that read no data stays free of it

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader either way
