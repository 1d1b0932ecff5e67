"""Finds the probes: programs with a header block that is read as text. They are never imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.model.probes import ProbeSpec
from trainprobe.system.own_programs import folder_of_probes

OPENS, CLOSES = "# /// trainprobe", "# ///"
HEAD_LINES = 200
NEEDS = frozenset(
    {"imports", "torch", "gpu", "nccl", "gloo", "ranks>=2", "script", "dataset", "model"}
)
USER_SCRIPT = "user_script"


def built_in_folder() -> str:
    """Return where our own probes lie: inside the wheel, or beside the package in a checkout."""
    return folder_of_probes()


def find(folders: Sequence[str]) -> tuple[ProbeSpec, ...]:
    """Return all probes of the built-in folder and of `folders`, lowest rung first. A check program
    with `ladder: false` is no rung.

    Raises UsageError for a folder without a probe, a broken header, and a name that two probes
    bear.
    """
    found: dict[str, ProbeSpec] = {}
    ours = built_in_folder()
    for folder in (ours, *folders):
        specs = tuple(spec for spec in in_folder(folder) if spec.extra.get("ladder") is not False)
        if not specs and folder != ours:
            raise UsageError(
                f"There is no probe in {folder}.",
                f"A probe is a .py file with a block that begins with `{OPENS}`.",
            )
        for spec in specs:
            other = found.get(spec.name)
            if (
                other is not None
                and other.program
                and os.path.realpath(other.program) != os.path.realpath(spec.program)
            ):
                raise UsageError(
                    f"Two probes are called {spec.name}: {other.program} and {spec.program}.",
                    "Rename one of the files.",
                )
            found[spec.name] = spec
    return tuple(sorted(found.values(), key=lambda spec: (spec.rung, spec.name)))


def usable(folders: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders of plugins that can be used, and a sentence for each other one: a
    stranger's package must not end the climb.
    """
    good: list[str] = []
    trouble: list[str] = []
    for folder in folders:
        try:
            find((*good, folder))
        except UsageError as error:
            trouble.append(f"The probes of a plugin are left out: {error.says}")
        else:
            good.append(folder)
    return tuple(good), tuple(trouble)


def in_folder(folder: str) -> tuple[ProbeSpec, ...]:
    """Return the probes of one folder. A file without a header block, or whose name begins with
    `_`, is none.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise UsageError(
            f"The folder of probes {folder} cannot be read: {error.strerror}.", "Check --probe-dir."
        ) from error
    paths = [
        os.path.join(folder, name)
        for name in names
        if name.endswith(".py") and not name.startswith("_")
    ]
    return tuple(spec for path in paths if (spec := read_header(path)) is not None)


def read_header(path: str) -> ProbeSpec | None:
    """Parse the header block of one file; None when it has none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n") for _, line in zip(range(HEAD_LINES), file)]
    except OSError as error:
        raise UsageError(f"The probe {path} cannot be read: {error.strerror}.") from error
    return parse_header(path, lines)


def parse_header(path: str, lines: Sequence[str]) -> ProbeSpec | None:
    """Parse the block between `# /// trainprobe` and `# ///`. Raises UsageError that names file
    and line.
    """
    opened = next((place for place, line in enumerate(lines) if line.rstrip() == OPENS), None)
    if opened is None:
        return None
    closed = next(
        (place for place in range(opened + 1, len(lines)) if lines[place].rstrip() == CLOSES), None
    )
    if closed is None:
        raise _broken(path, opened + 1, f"it is not closed by a line `{CLOSES}`")
    block = []
    for place in range(opened + 1, closed):
        line = lines[place]
        if not line.startswith("#"):
            raise _broken(path, place + 1, "a line does not begin with #")
        block.append(line[2:] if line.startswith("# ") else line[1:])
    import yaml

    try:
        data = yaml.safe_load("\n".join(block))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line_number = opened + 2 + (mark.line if mark is not None else 0)
        raise _broken(
            path, line_number, f"it is not YAML ({getattr(error, 'problem', None) or 'unreadable'})"
        ) from error
    return _spec(path, opened + 1, block, data)


def _spec(path: str, line: int, block: Sequence[str], data: Any) -> ProbeSpec:
    if not isinstance(data, Mapping):
        raise _broken(path, line, "it must hold `name: value` lines")

    def at(key: str) -> int:
        return next(
            (line + 1 + place for place, text in enumerate(block) if text.startswith(f"{key}:")),
            line,
        )

    def text(key: str, default: str) -> str:
        value = data.get(key, default)
        if not isinstance(value, str) or (not value and not default):
            raise _broken(path, at(key), f"{key} must be a text")
        return value

    def names(key: str) -> tuple[str, ...]:
        value = data.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _broken(path, at(key), f"{key} must be a list of names")
        return tuple(value)

    def number(key: str, default: float | None) -> float:
        value = data.get(key, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not value >= 0
            or value > 1e6
        ):
            raise _broken(path, at(key), f"{key} must be a number from 0 to 1000000")
        return float(value)

    scope = text("scope", "host")
    if scope not in ("host", "ranks"):
        raise _broken(path, at("scope"), f"scope is host or ranks, not {scope}")
    unknown = [need for need in names("needs") if need not in NEEDS]
    if unknown:
        raise _broken(
            path, at("needs"), f"needs knows {', '.join(sorted(NEEDS))}, not {unknown[0]}"
        )
    known = {"name", "rung", "question", "scope", "needs", "timeout_s", "climbs", "after", "means"}
    return ProbeSpec(
        name=text("name", Path(path).stem),
        rung=int(number("rung", None)),
        question=text("question", ""),
        program=os.path.abspath(path),
        scope="ranks" if scope == "ranks" else "host",
        needs=names("needs"),
        timeout_s=number("timeout_s", 60.0),
        climbs=names("climbs"),
        after=names("after"),
        means=text("means", " ").strip(),
        extra={str(key): value for key, value in data.items() if key not in known},
    )


def _broken(path: str, line: int, why: str) -> UsageError:
    return UsageError(
        f"The header block of the probe {path}, line {line}, cannot be used: {why}.",
        "Correct the block, or remove the file from the folder.",
    )
