"""Which files are meant: names, folders, globs that no shell has expanded, and `-` for stdin."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainprobe.collect.inputs import is_case
from trainprobe.errors import UsageError

STDIN = "-"
FILES_CAP = 20_000
DEPTH_CAP = 12
SCANNED_CAP = 200_000
NAME = "Name logs, folders of logs, dumps, a case that trainprobe made, or - for stdin."


@dataclass
class Found:
    """Files in the order of the command line, in folders by name, each once; the folders of cases.

    `left_out` and `unread` hold one sentence for each part that was not asked for or names nothing.
    """

    files: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def find_inputs(paths: Sequence[str]) -> Found:
    """List what `paths` name, without opening any of it. Raises UsageError where none of them names anything."""
    found = Found()
    seen: set[tuple[int, int] | str] = set()
    first: UsageError | None = None
    for path in paths:
        if path == STDIN:
            _add(found, STDIN, seen)
            continue
        try:
            names = _expanded(path)
        except UsageError as error:
            first = first or error
            found.unread.append(error.says)
            continue
        for one in names:
            if os.path.isdir(one):
                _add_folder(found, one, seen)
            else:
                _add(found, one, seen)
    if first is not None and not (found.files or found.cases):
        raise first
    return found


def _expanded(path: str) -> list[str]:
    """A name that is there is that file, whatever signs it holds; else it is tried as a glob."""
    if "\0" in path:
        raise UsageError("A path with a zero byte names nothing.", NAME)
    if os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise UsageError(f"There is no file or folder {path}.", NAME)
    return matches[:FILES_CAP]


def _add(found: Found, path: str, seen: set[tuple[int, int] | str]) -> None:
    key = _identity(path)
    if key in seen:
        return
    seen.add(key)
    if len(found.files) >= FILES_CAP:
        if len(found.files) == FILES_CAP and not any("at most" in says for says in found.left_out):
            found.left_out.append(f"at most {FILES_CAP} files are read; {path} and what follows it was left out")
        return
    found.files.append(path)


def _identity(path: str) -> tuple[int, int] | str:
    """The same file by two names is read once."""
    if path == STDIN:
        return STDIN
    try:
        status = os.stat(path)
    except OSError:
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


def _add_folder(found: Found, top: str, seen: set[tuple[int, int] | str]) -> None:
    """Links to folders are not followed, so no loop and no way out of the folder; links to files are, and must be plain files to be read."""
    if is_case(top):
        found.cases.append(top)
        return
    scanned = 0
    refused: list[str] = []

    def refuse(error: OSError) -> None:
        refused.append(f"{error.filename} could not be listed: {error.strerror}")

    for folder, folders, names in os.walk(top, onerror=refuse):
        depth = 0 if folder == top else os.path.relpath(folder, top).count(os.sep) + 1
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not is_case(os.path.join(folder, name)))
        if depth >= DEPTH_CAP and folders:
            refused.append(f"{folder} is {DEPTH_CAP} folders deep; what lies below was left out")
            folders[:] = []
        for name in sorted(names):
            if not name.startswith("."):
                _add(found, os.path.join(folder, name), seen)
        scanned += len(names)
        if scanned > SCANNED_CAP:
            refused.append(f"{top} holds more than {SCANNED_CAP} files; the others were left out")
            break
    found.left_out += refused
