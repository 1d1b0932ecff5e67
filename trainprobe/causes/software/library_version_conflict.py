"""Installed Python packages do not fit each other.

A package compiled for NumPy 1 beside NumPy 2, a transformers that wants another tokenizers, an
interface that moved between two releases. The program fails at import, or at the first call.

Or a build of torch lacks what this job asks it for: libuv for the store, a transport for Gloo.

It is recognised by the packages' own words about versions, and by torch's about its build.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed, failed_at_start, first_of, import_fails, stated
from trainprobe.causes.startup_failures import startup_failure
from trainprobe.causes.statements import first_to_fail, quote, quote_after, statement
from trainprobe.causes.version_conflicts import version_conflict
from trainprobe.model.diagnosis import Fix
from trainprobe.signatures.messages import message
from trainprobe.stacks.places import is_library

WORDING = message("library-version-conflict")
MOVED = message("library-version-conflict.moved")
GONE = message("library-version-conflict.gone")
LACKS = message("library-version-conflict.build-lacks")
# Python names the whole path only where the first part of it was imported: the package is there,
# this part of it is not.
PART = r"No module named '(?P<module>\w+)\.(?P<name>[\w.]+)'(?!; )"
ARGUMENT = r"\(\) got an unexpected keyword argument '(?P<name>\w+)'"
# Packages whose missing names mean another release.
WELL_KNOWN = re.compile(
    r"torch|torchvision|torchaudio|transformers|accelerate|datasets|huggingface_hub|tokenizers|peft"
    r"|trl|triton|deepspeed|diffusers|numpy|scipy|sklearn|pandas|pyarrow|lightning|pytorch_lightning"
    r"|torchmetrics|typing_extensions|urllib3|pydantic|packaging"
)
CLASSES = (
    r"\b(?:Accelerator|TrainingArguments|Trainer|SFTTrainer|LoraConfig|DataLoader|GradScaler)"
    r"\.__init__\(\)"
)
ANY_WORDING = "|".join(
    re.sub(r"\?P<\w+>", "?:", pattern) for pattern in (WORDING, MOVED, GONE, PART, ARGUMENT)
)
INSTALLED = re.compile(r"(?:site|dist)-packages")


def _named_versions(scene: Scene) -> Weighings:
    found = statement(scene, WORDING)
    if found is not None:
        named = re.search(r"\d", found.text)
        says = "themselves name the versions" if named else "themselves say that they do not fit"
        yield weighing(10, "source", f"The packages {says}", found.fact)


def _moved(scene: Scene) -> Weighings:
    """A missing interface: of an installed package another release, else the user's code."""
    origin, name = scene.origin, statement(scene, MOVED)
    gone, argument = statement(scene, GONE), statement(scene, ARGUMENT)
    part = statement(scene, PART)
    by_library = origin is not None and bool(origin.frames) and is_library(origin.frames[-1])
    if name is not None:
        file, module = name.match.group("file") or "", name.match.group("module") or ""
        installed = INSTALLED.search(file) or WELL_KNOWN.fullmatch(module)
        # A circular import or a local file of that name says the same.
        points = 13 if installed and "unknown location" not in file else 6
        yield quote(points, "A name is not where it is expected", name)
    elif part is not None and WELL_KNOWN.fullmatch(part.match.group("module")):
        yield quote(13, "The package is there, this part of it is not", part)
    elif gone is not None and (gone.match.group("module") != "torch" or by_library):
        yield quote(13 if by_library else 10, "An interface is not there", gone)
    elif argument is not None and (by_library or re.search(CLASSES, argument.text)):
        yield quote(13, "A library passes what another does not know", argument)
    else:
        return
    yield from first_to_fail(scene)


def _pin(scene: Scene, python: str) -> Fix:
    pair = version_conflict(scene, ANY_WORDING)
    found = statement(scene, WORDING) or statement(scene, MOVED) or statement(scene, GONE)
    text = found.text.lower() if found is not None else ""
    groups = found.match.groupdict() if found is not None else {}
    if "weights_only" in text:
        return fix(
            "Say what the file may hold",
            "torch.load(path, weights_only=False)   (only for a file that you trust)",
            f"{python} -m pip install 'torch<2.6'   (the other way)",
        )
    if pair is not None:
        return fix("Take the pair that fits", pair.command.replace("{python}", python))
    if "numpy is not available" in text:
        return fix(
            "Install the NumPy that torch was built for",
            f"{python} -m pip install 'numpy<2'   (for torch before 2.3; or take a newer torch)",
        )
    if module := groups.get("module"):
        return fix(
            f"Take the {module} that has {groups.get('name') or 'it'}",
            f"{python} -m pip show {module}",
            f"{python} -m pip install '{module}==VERSION'",
        )
    return fix(
        "Pin the pair",
        f"{python} -m pip install 'PACKAGE==VERSION'   (the version that the message asks for)",
    )


LACKING = {
    "store": fix(
        "Use the store that this build of torch has",
        "export USE_LIBUV=0   (on Windows: set USE_LIBUV=0)",
        'init_method="env://?use_libuv=0"',
    ),
    "gloo": fix(
        "Use a torch whose Gloo has a transport",
        "on Windows: torch 2.7 (2.8 and 2.9 have none), or the job under WSL 2",
        "unset GLOO_DEVICE_TRANSPORT   (if it is set)",
        "one process alone needs no process group",
    ),
}


def _lacking(scene: Scene) -> str:
    """`store` or `gloo` where this build of torch has no such part; else empty."""
    found = startup_failure(scene, LACKS, "build-lacks")
    match = re.search(LACKS, found.text) if found is not None else None
    return next((name for name in LACKING if match is not None and match.group(name)), "")


def _summary(scene: Scene) -> str:
    if lacking := _lacking(scene):
        part = "libuv, which its store is to use" if lacking == "store" else "a transport for Gloo"
        return f"This build of torch has not got {part}"
    pair = version_conflict(scene, ANY_WORDING)
    found = next(
        (
            said
            for wording in (WORDING, MOVED, GONE, PART, ARGUMENT)
            if (said := statement(scene, wording))
        ),
        None,
    )
    says = pair.says if pair is not None else "Installed packages do not fit each other"
    return f"{says}{quote_after(found)}"


def _fixes(scene: Scene) -> Fixes:
    if lacking := _lacking(scene):
        return (LACKING[lacking],)
    python = scene.plan.interpreter_path or "python"
    check = f"{python} -m pip check"
    return (fix("See what does not fit", check, verify=check), _pin(scene, python))


CAUSE = Cause(
    id="library-version-conflict",
    title="Python packages do not fit each other",
    weigh=first_of(
        confirmed(
            first_of(import_fails(WORDING, "over versions"), stated(WORDING)), _named_versions
        ),
        failed_at_start(LACKS, "build-lacks"),
        _moved,
    ),
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="pip check in the interpreter of the job",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=f"{WORDING}|{LACKS}",
)
