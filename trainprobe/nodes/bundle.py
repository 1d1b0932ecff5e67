"""The tool as one file, for nodes that do not have it: what looks, checks and probes, with what
these need, and py-spy.

A node's own Python runs it, from 3.9 on: `python3 trainprobe.pyz look-here`. Where the file is not
there either, it comes through stdin of the command.
"""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainprobe.collect import pyspy
from trainprobe.errors import UsageError
from trainprobe.nodes import bundle_main
from trainprobe.nodes.transports import WITHOUT_CWD, Way
from trainprobe.system.own_programs import folder_of_probes

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What concludes, reads logs or talks to people is not for a node.
LEFT_OUT = frozenset(
    {
        "__pycache__",
        "_demos",
        "_probes",
        "callbacks",
        "causes",
        "cli",
        "demo",
        "logs",
        "report",
        "sbatch",
        "scaling",
        "supervise",
        "waits",
    }
)
OF_CLI = ("__init__.py", "bundled.py", "ready_slot.py", "standard_streams.py")
# What the output formats of the administrators' slots need.
OF_REPORT = (
    "__init__.py",
    "extra.py",
    "format.py",
    "json_report.py",
    "lines.py",
    "outcomes.py",
    "phrases.py",
    "slot_report.py",
)
FILES = (".py", ".yaml", ".json")
MOMENT = (2020, 1, 1, 0, 0, 0)  # the same files make the same bundle
START = b"#!/usr/bin/env python3\n"
# Plain enough for any Python.
NEW_ENOUGH = (
    "import sys; sys.version_info >= (3, 9) or sys.exit('trainprobe: Python 3.9 or newer is needed;"
    " this is %d.%d of %s.' % (sys.version_info[0], sys.version_info[1], sys.executable))"
)
MAIN = f"""{NEW_ENOUGH}
import zipfile
from bundle_main import run
run(zipfile.ZipFile(sys.argv[0]), sys.argv[1:])
"""
# Reads `LENGTH\n` and so many bytes from stdin, not one more: what is behind them is the command's.
LOADER = (
    f"{NEW_ENOUGH}; {WITHOUT_CWD}\n"
    + """
import io, os, zipfile
def read(count):
    parts = []
    while count > 0:
        part = os.read(0, min(count, 1 << 20))
        if not part: sys.exit("trainprobe: the bundle did not come whole")
        parts.append(part); count -= len(part)
    return b"".join(parts)
head = b""
while not head.endswith(b"\\n"): head += read(1)
archive = zipfile.ZipFile(io.BytesIO(read(int(head))))
names = {"__name__": "bundle"}
exec(archive.read("bundle_main.py"), names)
names["run"](archive, sys.argv[1:])
""".strip()
)


@dataclass(frozen=True)
class Bundle:
    """The file's bytes, and a sentence about what it lacks, "" where nothing."""

    content: bytes
    lacks: str = ""


def bundled() -> Bundle:
    """Make the bundle of this very tool. Raises UsageError where its own files cannot be read."""
    py_spy, why = pyspy.find()
    target = io.BytesIO()
    target.write(START)
    try:
        with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py", MOMENT), MAIN)
            for path, name in _files():
                _put(archive, path, name)
            if py_spy is not None:
                _put(archive, py_spy, bundle_main.PY_SPY)
    except OSError as error:
        raise UsageError(
            f"The bundle cannot be made: {error.strerror}: {error.filename}.",
            "Install trainprobe again.",
        ) from error
    return Bundle(
        target.getvalue(),
        (
            ""
            if py_spy is not None
            else f"There is no py-spy in it, so it reads no Python stacks: {why}."
        ),
    )


def write_bundle(path: str) -> Bundle:
    """Write the bundle to `path`, whole or not at all. Raises UsageError."""
    found = bundled()
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "wb") as file:
            file.write(found.content)
        os.chmod(unfinished, 0o755)  # noqa: S103 - a program for everybody
        os.replace(unfinished, path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.",
            "Name another file: trainprobe bundle-tool -o FILE.",
        ) from error
    return found


def carrying(way: Way, bundle: Bundle, python: str = "python3") -> Way:
    """The same way, with the tool sent along: the nodes need only a `python` from 3.9 on."""
    return replace(
        way,
        start=lambda words: (python, "-c", LOADER, *words),
        sent=b"%d\n%s" % (len(bundle.content), bundle.content),
    )


def machine() -> str:
    """For which processors py-spy in the bundle is made."""
    return platform.machine()


def _put(archive: zipfile.ZipFile, path: str, name: str) -> None:
    with open(path, "rb") as file:
        archive.writestr(zipfile.ZipInfo(name, MOMENT), file.read(), zipfile.ZIP_DEFLATED, 6)


def _files() -> Iterator[tuple[str, str]]:
    """The path of each file, and its name in the bundle."""
    yield os.path.join(PACKAGE, "nodes", "bundle_main.py"), "bundle_main.py"
    for path in _below(PACKAGE):
        yield path, os.path.join("trainprobe", os.path.relpath(path, PACKAGE))
    for part, names in (("cli", OF_CLI), ("report", OF_REPORT)):
        yield from (
            (os.path.join(PACKAGE, part, name), os.path.join("trainprobe", part, name))
            for name in names
        )
    for path in _below(os.path.join(PACKAGE, "report", "formats")):
        yield path, os.path.join("trainprobe", os.path.relpath(path, PACKAGE))
    probes = folder_of_probes()
    for path in _below(probes):
        yield path, os.path.join("trainprobe", "_probes", os.path.relpath(path, probes))
    yaml = importlib.util.find_spec("yaml")  # in Python alone; a node's own Python need not have it
    for place in (yaml.submodule_search_locations or ()) if yaml is not None else ():
        yield from (
            (path, os.path.join("yaml", os.path.relpath(path, place))) for path in _below(place)
        )


def _below(folder: str) -> Iterator[str]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        yield from (os.path.join(where, name) for name in sorted(files) if name.endswith(FILES))
