"""A module that the job needs raises or aborts while it is imported.

A missing package, a configuration file that is read at import, a check that fails at the top level:
the program ends before it has begun. Where the reason has a name of its own (a native module built
for another torch, versions that do not fit, a local file that hides a package), that cause stands
before this one.

It is recognised by the import probe, where the module alone failed, or by a traceback whose frames
run through an import. `ready` names the nodes where the Python of the job does not start, or does
not find what the script imports.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.component_told import OF_AN_IMPORT, another_raised
from trainprobe.causes.finer_causes import finer_cause
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.causes.statements import first_to_fail, quote, text_of
from trainprobe.facts import ImportTried
from trainprobe.signatures.messages import message

WORDING = message("import-failure")
MISSING = re.compile(r"No module named '([\w.]+)'")


def _failed(scene: Scene) -> tuple[ImportTried, ...]:
    tried = scene.facts.of(ImportTried) if scene.group.probe == "import_memory" else ()
    return tuple(
        fact for fact in tried if fact.how == "alone" and fact.outcome in ("failed", "crashed")
    )


def _weigh(scene: Scene) -> Weighings:
    failed = _failed(scene)
    tried = scene.facts.of(ImportTried) if scene.group.probe == "import_memory" else ()
    if failed:
        what = (
            f"{failed[0].error_type}: {short(failed[0].error, 120)}"
            if failed[0].error_type
            else failed[0].outcome
        )
        says = f"`import {failed[0].module}` alone, in a fresh process, failed ({what})"
        yield weighing(26, "probe-outcome", says, failed[0])
    elif any(fact.how == "alone" and fact.outcome == "passed" for fact in tried) and all(
        fact.outcome != "failed" for fact in tried
    ):
        yield weighing(-26, "probe-outcome", "No import failed alone", *tried)
    origin = scene.origin
    if origin is not None and origin.interrupted and not failed:
        says = "Somebody pressed Ctrl-C; the traceback only shows what was being imported"
        yield weighing(-26, "suspects-log", says, origin)
        return
    if origin is not None and (origin.module_importing or re.search(WORDING, text_of(origin))):
        name = origin.module_importing or "a module"
        # Raised while a module's top level ran: that is what this cause means. ImportError
        # elsewhere (a late import) counts less.
        foreign = origin.of_the_system or another_raised(scene, OF_AN_IMPORT) is not None
        points = 6 if foreign else 26 if origin.module_importing else 13
        says = f"The import of {name} raised {origin.type}: {short(origin.message, 120)}"
        yield weighing(points, "suspects-log", says, origin)
        if origin.module_importing and not foreign:
            yield weighing(
                10, "suspects-stack", f"The traceback runs through the top level of {name}", origin
            )
        if not foreign:
            yield from first_to_fail(scene)
    elif origin is None and not failed:
        reported = scene.events("module-not-found", "name-not-importable")
        if reported:
            yield quote(13, "The output says", reported[0])
    texts = [f"{fact.error_type}: {fact.error}" for fact in failed]
    texts += [text_of(origin)] if origin is not None else []
    better = finer_cause(
        lambda wording: any(re.search(wording, text) for text in texts), refines=CAUSE.id
    )
    if better:
        says = f"What it says has a name of its own: {better}"
        yield weighing(-13, "source", says, *failed, origin)


def _said(scene: Scene) -> tuple[str, str, str]:
    """The module, what was raised, and where."""
    for fact in _failed(scene):
        frame = user_frame(fact.frames)
        return (
            fact.module,
            (
                f"{fact.error_type}: {short(fact.error, 120)}"
                if fact.error_type
                else f"it {fact.outcome}"
            ),
            frame.where if frame else "",
        )
    origin = scene.origin
    reported = scene.events("module-not-found", "name-not-importable")
    if origin is None and reported:
        return reported[0].captured.get("module", "a module"), short(reported[0].line, 120), ""
    if origin is None:
        return "a module", "an error", ""
    frame = user_frame(origin.frames)
    missing = MISSING.search(origin.message)
    name = origin.module_importing or (missing.group(1) if missing else "a module")
    return name, f"{origin.type}: {short(origin.message, 120)}", frame.where if frame else ""


def _summary(scene: Scene) -> str:
    name, what, where = _said(scene)
    return f"The import of {name} fails with {what}{f' at {where}' if where else ''}"


def _fixes(scene: Scene) -> Fixes:
    name, what, where = _said(scene)
    python = scene.plan.interpreter_path or "python"
    missing = MISSING.search(what)
    again = f"{python} -c 'import {name if name != 'a module' else 'MODULE'}'"
    install = f"{python} -m pip install {missing.group(1).split('.')[0]}" if missing else ""
    return (
        fix("Repeat it alone", again, f"open {where}" if where else "", verify=again),
        fix("Mend or pin the package", install or f"{python} -m pip check", verify=again),
    )


CAUSE = Cause(
    id="import-failure",
    title="A module fails to import",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="import that module alone: python -c 'import <MODULE>'",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("cannot load what the job needs",) * 2, checks=("py.start", "py.modules")
    ),
)
