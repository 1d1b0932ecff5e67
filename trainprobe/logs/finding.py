"""Lists the input files: names, folders, globs that no shell has expanded, and `-` for stdin."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainprobe.collect.inputs import is_case
from trainprobe.errors import UsageError
from trainprobe.system.answering import silent

STDIN = "-"
FILES_CAP = 20_000
DEPTH_CAP = 12
SCANNED_CAP = 200_000
NAME = "Name logs, folders of logs, dumps, a case that trainprobe made, or - for stdin."


@dataclass
class Found:
    """Files in the order of the command line, in folders by name, each once; and folders of cases.

    `left_out` has a sentence for each part beyond a limit, `unread` for each name without a file.
    """

    files: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def find_inputs(paths: Sequence[str]) -> Found:
    """List what `paths` name, without opening it. Raises UsageError if none of them exists."""
    found = Found()
    known: set[tuple[int, int] | str] = set()
    first: UsageError | None = None
    for path in paths:
        if path == STDIN:
            _add(found, STDIN, known)
            continue
        try:
            names = _expanded(path)
        except UsageError as error:
            first = first or error
            found.unread.append(error.says)
            continue
        for name in names:
            if os.path.isdir(name):
                _add_folder(found, name, known)
            else:
                _add(found, name, known)
    if first is not None and not (found.files or found.cases):
        raise first
    return found


def _expanded(path: str) -> list[str]:
    """An existing name is that file, whatever characters it holds; any other may be a glob."""
    if "\0" in path:
        raise UsageError("A path with a zero byte names nothing.", NAME)
    silence = silent(path)
    if silence:
        raise UsageError(f"{path} cannot be read: {silence}.", NAME)
    if os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise UsageError(f"There is no file or folder {path}.", NAME)
    return matches[:FILES_CAP]


def _add(found: Found, path: str, known: set[tuple[int, int] | str]) -> None:
    key = _identity(path)
    if key in known:
        return
    known.add(key)
    if len(found.files) >= FILES_CAP:
        if len(found.files) == FILES_CAP and not any("at most" in says for says in found.left_out):
            found.left_out.append(
                f"at most {FILES_CAP} files are read; {path} and what follows it was left out"
            )
        return
    found.files.append(path)


def _identity(path: str) -> tuple[int, int] | str:
    """A key that two names of the same file share."""
    if path == STDIN:
        return STDIN
    try:
        status = os.stat(path)
    except OSError:
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


def _add_folder(found: Found, top: str, known: set[tuple[int, int] | str]) -> None:
    """Links to folders are not followed, so there is no loop and no way out of the folder; links to
    regular files are.
    """
    if is_case(top):
        found.cases.append(top)
        return
    scanned = 0
    refused: list[str] = []

    def refuse(error: OSError) -> None:
        refused.append(f"{error.filename} could not be listed: {error.strerror}")

    for folder, folders, names in os.walk(top, onerror=refuse):
        depth = 0 if folder == top else os.path.relpath(folder, top).count(os.sep) + 1
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not is_case(os.path.join(folder, name))
        )
        if depth >= DEPTH_CAP and folders:
            refused.append(f"{folder} is {DEPTH_CAP} folders deep; what lies below was left out")
            folders[:] = []
        for name in sorted(names):
            if not name.startswith("."):
                _add(found, os.path.join(folder, name), known)
        scanned += len(names)
        if scanned > SCANNED_CAP:
            refused.append(f"{top} holds more than {SCANNED_CAP} files; the others were left out")
            break
    found.left_out += refused
