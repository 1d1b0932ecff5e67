"""A native extension does not build.

An extension that is built when first used needs a compiler, ninja and a CUDA toolkit that fit
torch. Where they do not, the first rank to load it raises.

It is recognised by torch's "Error building extension" and by nvcc's and ninja's own words, in the
exception of the first rank to die or in its output.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, text_of, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("extension-build-failure")
ABSENT = r"torch_extensions/[\w./-]{1,200}/(?P<name>\w{1,80})\.so: cannot open shared object file"
# The functions that build, also those of inductor's C++ and triton's launchers.
BUILDERS = re.compile(
    r"_run_ninja_build|_write_ninja_file_and_build_library|_build_extension_module|_build"
    r"|verify_ninja_availability|_?run_compile_cmd|compile_file"
)
BUILD_FILES = re.compile(
    r"cpp_extension|torch/_inductor/(?:cpp_builder|codecache)|triton/(?:common|runtime)/build"
)


def _building(scene: Scene) -> Weighings:
    origin = scene.origin
    if origin is not None and any(
        BUILDERS.fullmatch(frame.name) and BUILD_FILES.search(frame.file) for frame in origin.frames
    ):
        says = f"{origin.type} was raised while an extension was compiled"
        yield weighing(26, "suspects-stack", says, origin)


def _absent(scene: Scene) -> Weighings:
    """The file would exist if the build, by this or by another rank, had succeeded."""
    found = statement(scene, ABSENT)
    if found is not None:
        points = 26 if found.origin else 13
        yield quote(points, "The extension that was built is not there", found)


def _weigh(scene: Scene) -> Weighings:
    found = (*(tuple(weigh_statement(scene, WORDING)) or _building(scene)), *_absent(scene))
    yield from found
    if found:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING) or statement(scene, ABSENT)
    groups = found.match.groupdict() if found is not None else {}
    name = groups.get("name") or groups.get("op") or ""
    origin = text_of(scene.origin) if scene.origin is not None else ""
    what = f"the extension {name}" if name else "a native extension"
    why = short(found.text if found is not None else origin, 120)
    return f"{subject(scene)} could not build {what}: {why}"


CAUSE = Cause(
    id="extension-build-failure",
    title="A native extension does not build",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Read the compiler's first error
            MAX_JOBS=1 and verbose=True in load(...), on one rank
        A toolchain that fits torch
            python -c 'import torch; print(torch.version.cuda)'; nvcc --version; c++ --version;
                ninja --version
            pip install ninja
        Or build it beforehand
            install the package's wheel, or load the extension once before the launch
    """),
    would_settle="load the extension alone with verbose=True",
    refines="user-exception",
    accounts_for=("import-failure", "abi-mismatch"),
    wording=rf"{WORDING}|{ABSENT.replace('?P<name>', '?:')}",
)
