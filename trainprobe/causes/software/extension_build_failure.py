"""A native extension does not build.

An extension that is built when first used needs a compiler, ninja and a CUDA toolkit that fit torch. Where they do not, the first rank to load it raises.

It is recognised by torch's "Error building extension" and by nvcc's and ninja's own words, in the exception of the first rank to die or in its output.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

WORDING = r"Error building extension '(?P<name>[^']{1,100})'|Ninja is required to load C\+\+ extensions|nvcc fatal|CUDA_HOME environment variable is not set|The detected CUDA version .* mismatches"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = tuple(spoken(scene, WORDING))
    yield from heard
    if heard:
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    name = heard.match.groupdict().get("name") if heard is not None else ""
    return sentence(
        f"{subject(scene)} could not build {f'the extension {name}' if name else 'a native extension'}: {short(heard.text, 120) if heard is not None else ''}"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Read the compiler's first error", "MAX_JOBS=1 and verbose=True in load(...), on one rank"),
        fix(
            scene,
            "A toolchain that fits torch",
            "python -c 'import torch; print(torch.version.cuda)'; nvcc --version; c++ --version; ninja --version",
            "pip install ninja",
        ),
        fix(scene, "Or build it beforehand", "install the package's wheel, or load the extension once before the launch"),
    )


CAUSE = Cause(
    id="extension-build-failure",
    title="A native extension does not build",
    means="A native extension that is built when first used does not build.",
    telling="Errors of the compiler or ninja below the load of an extension.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="load the extension alone with verbose=True",
    refines="user-exception",
    wording=WORDING,
)
