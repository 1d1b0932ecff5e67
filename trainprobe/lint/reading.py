"""Read the requested files, the neighbours that they import, and their configuration files."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import os
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from trainprobe.lint.collector_pause import collector_paused
from trainprobe.lint.limits import LARGEST_BYTES, MOST_FILES, MOST_LINES
from trainprobe.lint.model import NotRead
from trainprobe.lint.modules import Module
from trainprobe.lint.program import NodeInfo, Program, Source

SKIPPED_FOLDERS = set(
    """
    .git __pycache__ .venv venv node_modules .tox .mypy_cache .ruff_cache .ipynb_checkpoints .eggs
    .hg
    """.split()
)
MOST_IMPORTED_LINES = 50_000
"""Imported files are read up to this many lines, the nearest first."""
LARGEST_CONFIG = 1024 * 1024
TEST_FOLDERS = {"test", "tests"}
TEST_FILE = re.compile(r"test_.*|.*_test|conftest")
TESTING = re.compile(
    r"^[ \t]*((async )?def test|class \w*Test|(import|from) (pytest|unittest)\b)", re.MULTILINE
)
VERSIONED = ("datasets",)
CONFIG_ENDINGS = (".yaml", ".yml", ".json")


class Looked(NamedTuple):
    """The paths at which reading looked: what decides the answer, together with their content."""

    files: set[str]
    absent: set[str]


def read_program(
    paths: Sequence[str],
    imported_lines: int = MOST_IMPORTED_LINES,
    around: NodeInfo | None = None,
    looked: Looked | None = None,
) -> Program:
    """Read files and folders, and `imported_lines` of what they import. `not_read` lists unreadable
    files with a sentence. Without `around`, versions are this tool's and the node is unknown.
    `looked` is filled.
    """
    with collector_paused():
        return _read(paths, imported_lines, around, looked)


def _read(
    paths: Sequence[str], imported_lines: int, around: NodeInfo | None, looked: Looked | None
) -> Program:
    looked = looked if looked is not None else Looked(set(), set())
    program = Program((), around=around if around is not None else NodeInfo(installed_versions()))
    roots = {
        os.path.realpath(path if os.path.isdir(path) else os.path.dirname(path) or ".")
        for path in paths
    }
    visited: set[str] = set()
    lines = 0
    for path, of_tests in listed_files(paths, program.not_read):
        looked.files.add(path)
        if of_tests and is_test(path):
            program.tests_left_out += 1
            continue
        real = os.path.realpath(path)
        if real in visited:
            continue
        visited.add(real)
        if len(visited) > MOST_FILES or lines > MOST_LINES:
            program.not_read.append(
                NotRead(
                    path,
                    f"This and what follows was left: {MOST_FILES:,} files or {MOST_LINES:,} lines"
                    " are read at once.",
                )
            )
            break
        module = _add(program, path, requested=True)
        lines += len(module.lines) if module is not None else 0
    if not program.modules and program.tests_left_out:
        only = "It holds only tests, which are read where they are named."
        program.not_read += [NotRead(path, only) for path in paths]
    real_of = functools.cache(os.path.realpath)
    asked: set[str] = set()
    todo = list(program.modules.values())
    most = lines + imported_lines
    listings: Listings = {}
    known: dict[tuple[str, str], list[str]] = {}
    while todo and len(visited) <= MOST_FILES and lines <= most:  # nearest first
        module = todo.pop(0)
        _read_configs(program, module, looked)
        for path in _imported(module, roots, looked, listings, known, real_of):
            if path in asked:
                continue
            asked.add(path)
            real = real_of(path)
            if (
                real in visited
                or lines > most
                or not any(real.startswith(root.rstrip("/") + "/") for root in roots)
            ):
                continue
            visited.add(real)
            looked.files.add(path)
            added = _add(program, path, requested=False)
            if added is not None:
                lines += len(added.lines)
                todo.append(added)
    return program


def is_test(path: str) -> bool:
    """Whether a file holds tests, as pytest and unittest find them, or helps those beside it."""
    if "tests" in os.path.dirname(path).split(os.sep):
        return True
    try:
        return TESTING.search(text_of(path)) is not None
    except (OSError, ValueError):
        return False


def installed_versions() -> dict[str, str]:
    """Return the installed versions of the packages on which rules depend. Nothing is imported."""
    found = {}
    for name in VERSIONED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def text_of(path: str) -> str:
    """A source file's text in its declared encoding; raises OSError, ValueError with a sentence."""
    size = os.stat(path).st_size
    if size > LARGEST_BYTES * (8 if path.endswith(".ipynb") else 1):
        raise ValueError(
            f"It holds {size / 1e6:.0f} MB; source above {LARGEST_BYTES / 1e6:.0f} MB is not read."
        )
    with open(path, "rb") as file:
        raw = file.read(LARGEST_BYTES * 8)
    if path.endswith(".ipynb"):
        return raw.decode("utf-8", "replace")
    return decoded(raw)


def decoded(raw: bytes) -> str:
    """Source as text; raises ValueError where its encoding is unknown or does not fit."""
    try:
        text = raw.decode(encoding_of(raw))
    except SyntaxError:
        raise ValueError(
            "It declares an encoding that Python does not know, or holds bytes that do not fit it."
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"It is not {error.encoding}: byte {error.start:,} does not fit."
        ) from None
    except LookupError:
        raise ValueError("It declares an encoding that is none of text.") from None
    if "\x00" in text:
        raise ValueError("It holds null bytes, so it is no source.")
    return text


def encoding_of(raw: bytes) -> str:
    """Return the encoding that source declares, as `tokenize` reads it; raises SyntaxError."""
    return tokenize.detect_encoding(io.BytesIO(raw).readline)[0]


def _add(program: Program, path: str, *, requested: bool) -> Module | None:
    try:
        text = text_of(path)
    except OSError as error:
        program.not_read.append(NotRead(path, f"It cannot be opened: {error.strerror}."))
        return None
    except ValueError as problem:
        program.not_read.append(NotRead(path, str(problem)))
        return None
    folder, file = os.path.split(path)
    stem = os.path.splitext(file)[0]
    parts = [] if stem == "__init__" else [stem]
    while folder and os.path.exists(os.path.join(folder, "__init__.py")) and len(parts) < 30:
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return program.add(
        Source(path, _unix(text), ".".join(parts) or stem, requested, is_package=stem == "__init__")
    )


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def listed_files(paths: Sequence[str], not_read: list[NotRead]) -> Iterator[tuple[str, bool]]:
    """Yield the files, and whether name or folder, within the path that was named, say tests."""
    for path in paths:
        if not os.path.isdir(path):
            if os.path.exists(path) and not os.path.isfile(path):
                not_read.append(NotRead(path, "It is no ordinary file."))
            else:
                yield path, False
            continue

        def refuse(error: OSError) -> None:
            not_read.append(NotRead(str(error.filename), f"It cannot be opened: {error.strerror}."))

        left_out, read = len(not_read), False
        are_named = not TEST_FOLDERS.isdisjoint(os.path.normpath(path).split(os.sep))
        # links to folders are not followed, so that no circle can be walked
        for folder, folders, files in os.walk(path, onerror=refuse):
            folders[:] = sorted(
                item for item in folders if item not in SKIPPED_FOLDERS and not item.startswith(".")
            )
            for file in sorted(files):
                whole = os.path.join(folder, file)
                if file.endswith((".py", ".ipynb")):
                    if os.path.isfile(whole):
                        read = True
                        below = os.path.relpath(folder, path).split(os.sep)
                        yield (
                            os.path.normpath(whole),
                            not are_named
                            and (
                                not TEST_FOLDERS.isdisjoint(below)
                                or TEST_FILE.fullmatch(os.path.splitext(file)[0]) is not None
                            ),
                        )
                    else:
                        not_read.append(
                            NotRead(
                                whole,
                                (
                                    "It is a link that leads nowhere."
                                    if os.path.islink(whole)
                                    else "It is no ordinary file."
                                ),
                            )
                        )
        if not read and len(not_read) == left_out:
            not_read.append(NotRead(path, "It holds no Python file and no notebook."))


Listings = dict[str, frozenset[str]]
"""The names of the files in each folder at which reading looked: one look for many imports."""


def _lies_in(path: str, listings: Listings) -> bool:
    folder, name = os.path.split(path)
    if folder not in listings:
        try:
            with os.scandir(folder) as entries:
                listings[folder] = frozenset(entry.name for entry in entries if entry.is_file())
        except OSError:
            listings[folder] = frozenset()
    return name in listings[folder]


def _imported(
    module: Module,
    roots: set[str],
    looked: Looked,
    listings: Listings,
    known: dict[tuple[str, str], list[str]],
    real_of: Callable[[str], str],
) -> Iterator[str]:
    """Paths of files that a module imports, where they lie beside it or above it, up to a root."""
    names = {(alias.name, 0) for node in module.of(ast.Import) for alias in node.names}
    for node in module.of(ast.ImportFrom):
        names |= {
            (f"{node.module or ''}.{alias.name}".strip("."), node.level) for alias in node.names
        }
    folder = os.path.dirname(os.path.abspath(module.path))
    relative = not os.path.isabs(module.path)
    for name, level in sorted(names):
        parts = name.split(".")
        at = folder
        for up in range(12):
            if level and up != level - 1:
                at = os.path.dirname(at)
                continue
            found = known.get((at, name))
            if found is None:
                stems = [f"{at}/{'/'.join(parts[:count])}" for count in range(1, len(parts) + 1)]
                asked = [path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py")]
                found = known[at, name] = [path for path in asked if _lies_in(path, listings)]
                looked.absent.update(path for path in asked if path not in found)
            yield from (os.path.relpath(path) if relative else path for path in found)
            if found or real_of(at) in roots or level:
                break
            at = os.path.dirname(at)


def _read_configs(program: Program, module: Module, looked: Looked) -> None:
    """Read the configuration files that a module names as literals."""
    for node in module.of(ast.Constant):
        value = node.value
        if (
            not isinstance(value, str)
            or not value.endswith(CONFIG_ENDINGS)
            or len(value) > 200
            or value in program.configs
        ):
            continue
        for base in (os.path.dirname(module.path) or ".", "."):
            path = os.path.join(base, value)
            (looked.files if os.path.isfile(path) else looked.absent).add(path)
            if os.path.isfile(path) and os.stat(path).st_size <= LARGEST_CONFIG:
                holder = _config(path)
                if holder is not None:
                    program.configs[value] = holder
                break


def _config(path: str) -> Any:
    try:
        import yaml
    except ImportError:  # on a node to which only the tool itself was sent
        return None
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST_CONFIG)
        if path.endswith(".json"):
            return json.loads(text)
        # a few aliases can make billions of entries
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            return None
        return yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return None
