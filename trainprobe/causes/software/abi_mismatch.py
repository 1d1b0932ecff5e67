"""A native module was built for another torch, C++ runtime or Python.

A wheel compiled against torch 2.4 beside torch 2.6, a system libstdc++ older than the one it was
built with, a CUDA library of another major
version: the loader finds no such symbol or file, at import or at the first call.

It is recognised by the loader's words, of the import probe or of the rank that failed first.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote_after, statement, weigh_statement
from trainprobe.facts import ImportTried
from trainprobe.signatures.messages import message

WORDING = message("abi-mismatch")
MODULE = re.compile(r"([\w./-]+\.so[\w.]*)")


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    if heard is None:
        return
    if isinstance(heard.fact, ImportTried):
        says = f"`import {heard.fact.module}` alone fails in the loader: {short(heard.text)}"
        yield weighing(26, "probe-outcome", says, heard.fact)
    else:
        yield from weigh_statement(scene, WORDING, log_points=26)
    says = "The dynamic loader itself says so, before any code of the module ran"
    yield weighing(10, "suspects-stack", says, heard.fact)
    yield from first_to_fail(scene)


def _module(scene: Scene) -> str:
    heard = statement(scene, WORDING)
    match = MODULE.search(heard.text) if heard is not None else None
    return match.group(1).rsplit("/", 1)[-1] if match else ""


def _summary(scene: Scene) -> str:
    heard, name = statement(scene, WORDING), _module(scene)
    return (
        f"{name or 'A native module'} does not fit the installed torch or"
        f" runtime{quote_after(heard)}"
    )


FIXES = """
Rebuild it for the torch that is installed
    {python} -m pip install --no-build-isolation --no-cache-dir --force-reinstall PACKAGE
    verify: {python} -c 'import torch, <MODULE>'
Or take the pair that fits
    {python} -m pip list | grep -i -E 'torch|nvidia'   (and the package's table of versions)
"""


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    return fixes(FIXES, python=python)


CAUSE = Cause(
    id="abi-mismatch",
    title="A native module was built for another version",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ldd -r on the module that the message names",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
)
