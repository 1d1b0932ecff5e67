"""Another module is imported than the one that was meant.

A file of one's own called `random.py` or `torch.py`, a folder named after an installed package, an interpreter of another environment: the first entry
of the import path wins. Errors look like a missing attribute of a well-known package, or "No module named" for one that is installed.

It is recognised by the environment check, which lists what hides what, and by Python's hint at a partially initialised module.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# CPython's Lib/importlib and moduleobject.c: the hint that a local file may hide a module.
WORDING = r"partially initialized module '\w+|consider renaming '[^']+' (?:since|if) it has the same name as|\(unknown location\)|; '[\w.]+' is not a package"
HINT = r"consider renaming '[^']+' (?:since|if) it has the same name as"
# Packages that nobody writes themselves: a circular import of theirs means that a file or folder of that name lies before them.
WELL_KNOWN = (
    r"(?:partially initialized module|from partially initialized module) '(?:torch|torchvision|transformers|datasets|numpy|random|logging|tokenize|types|queue|typing"
    r"|collections|copy|token|inspect|select|socket|string|math|accelerate|deepspeed|wandb|tokenizers|utils3)'|from '(?:torch|transformers|datasets|accelerate|numpy)[\w.]*' \(unknown location\)"
)
# An attribute that every release has: the module is not the package.
# A single file of that name lies before the package.
NO_PACKAGE = r"No module named '(?:torch|transformers|datasets|accelerate|deepspeed|numpy|lightning|tokenizers|wandb)[\w.]*'; '[\w.]+' is not a package"
BARE = r"module '(?:torch|numpy|transformers|datasets|accelerate)' has no attribute '(?:__version__|Tensor|tensor|nn|cuda|device|float32|manual_seed|load|save|array|ndarray|zeros|load_dataset|Dataset|AutoModel|AutoTokenizer|Trainer|Accelerator|distributed)'"
CHECKS = ("py.shadow", "py.copies", "py.editable")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, hidden = said(scene, WORDING), scene.checks("py.shadow")
    yield from checked(scene, *CHECKS, corroborates=heard is not None)
    if heard is not None:
        # Circular imports inside the user's own package say the same, so the words alone name nothing.
        if hidden or said(scene, f"{HINT}|{WELL_KNOWN}|{NO_PACKAGE}") is not None:
            yield from spoken(scene, WORDING)
        else:
            yield weighing(10, "suspects-log", f"Python hints at a name that is taken twice: {short(heard.text)}", heard.fact)
        yield from first_to_fail(scene)
    elif (bare := said(scene, BARE)) is not None:
        yield weighing(13, "suspects-log", f"A name that every release has is not there: {short(bare.text)}", bare.fact)
        yield weighing(6, "source", "Something else of that name is imported", bare.fact)
        yield from first_to_fail(scene)
    yield from _other_interpreter(scene)
    clean = [check for check in scene.checks("py.shadow", bad_only=False) if check.status == "ok"]
    if clean and not hidden:
        yield weighing(-10, "environment-and-limits", clean[0].says.rstrip("."), *clean)


def _other_interpreter(scene: Scene) -> Iterator[Weighing]:
    """A package that is known to be installed, by its version in the surroundings, and still is not found."""
    missing = said(scene, r"No module named '?(?P<module>\w+)")
    version = scene.given(f"version.{missing.match.group('module')}") if missing is not None else None
    if missing is not None and version is not None:
        says = f"{missing.match.group('module')} {version.value} is installed in the environment that was described, and is not found"
        yield weighing(13, "environment-and-limits", says, missing.fact, version)
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    check, heard = next(iter(scene.checks(*CHECKS)), None), said(scene, WORDING) or said(scene, BARE)
    return sentence(
        check.says
        if check is not None
        else f"A module is hidden by another of its name: {short(heard.text, 140)}"
        if heard
        else "A module is hidden by another of its name"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    see = f"{python} -c 'import sys, torch; print(sys.executable, torch.__file__)'"
    return (
        fix(scene, "Rename what hides the module", *advice(scene, *CHECKS), verify=see),
        fix(
            scene,
            "Let launcher and script share one interpreter",
            f"{python} -m torch.distributed.run …   instead of a torchrun from another environment",
            verify=see,
        ),
    )


CAUSE = readied(
    Cause(
        id="import-path",
        title="The wrong module or interpreter is used",
        means="The import path leads to another module, or another interpreter, than was meant.",
        telling="A local file or folder that hides a package; a partially initialised module; No module named for one that is installed.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="python -c 'import <MODULE>; print(<MODULE>.__file__)' from the job's folder",
        refines="import-failure",
        accounts_for=("user-exception",),
        wording=WORDING,
    ),
    Signs(says=("imports the wrong module", "import the wrong module"), checks=("py.shadow",)),
)
