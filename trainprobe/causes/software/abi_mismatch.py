"""A native module was built for another torch, C++ runtime or Python.

A wheel compiled against torch 2.4 beside torch 2.6, a system libstdc++ older than the one it was
built with, a CUDA library of another major
version: the loader finds no such symbol or file, at import or at the first call.

It is recognised by the loader's words, of the import probe or of the rank that failed first.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed, first_of, import_fails, stated
from trainprobe.causes.statements import quote_after, statement
from trainprobe.causes.version_conflicts import version_conflict
from trainprobe.signatures.messages import message

WORDING = message("abi-mismatch")
MODULE = re.compile(r"([\w./-]+\.so[\w.]*)")
FIXES = """
Rebuild it for the torch that is installed
    {python} -m pip install --no-build-isolation --no-cache-dir --force-reinstall PACKAGE
    verify: {python} -c 'import torch, <MODULE>'
Or take the pair that fits
    {python} -m pip list | grep -i -E 'torch|nvidia'   (and the package's table of versions)
"""


def _loader(scene: Scene) -> Weighings:
    found = statement(scene, WORDING)
    if found is not None:
        says = "The dynamic loader itself says so, before any code of the module ran"
        yield weighing(10, "suspects-stack", says, found.fact)


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING)
    pair = version_conflict(scene, WORDING)
    if pair is not None:
        return f"{pair.says}{quote_after(found)}"
    match = MODULE.search(found.text) if found is not None else None
    name = match.group(1).rsplit("/", 1)[-1] if match else "A native module"
    return f"{name} does not fit the installed torch or runtime{quote_after(found)}"


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    pair = version_conflict(scene, WORDING)
    if pair is None:
        return fixes(FIXES, python=python)
    fits = fix("Install it anew, for what is here", pair.command.replace("{python}", python))
    return (fits, *fixes(FIXES, python=python)[1:])


CAUSE = Cause(
    id="abi-mismatch",
    title="A native module was built for another version",
    weigh=confirmed(
        first_of(import_fails(WORDING, "in the loader"), stated(WORDING, log_points=26)), _loader
    ),
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ldd -r on the module that the message names",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
)
