"""A native extension does not build.

An extension that is built when first used needs a compiler, ninja and a CUDA toolkit that fit
torch. Where they do not, the first rank to load it raises.

It is recognised by torch's "Error building extension" and by nvcc's and ninja's own words, in the
exception of the first rank to die or in its output.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, text_of, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("extension-build-failure")
ABSENT = r"torch_extensions/[\w./-]{1,200}/(?P<name>\w{1,80})\.so: cannot open shared object file"


BUILDERS = (
    *(
        "_run_ninja_build",
        "_write_ninja_file_and_build_library",
        "_build_extension_module",
        "verify_ninja_availability",
    ),
    *(
        "_run_compile_cmd",
        "run_compile_cmd",
        "compile_file",
        "_build",
    ),  # inductor's C++ and triton's launchers
)
BUILD_FILES = (
    "cpp_extension",
    "torch/_inductor/cpp_builder",
    "torch/_inductor/codecache",
    "triton/common/build",
    "triton/runtime/build",
)


def _weigh(scene: Scene) -> Weighings:
    heard = tuple(weigh_statement(scene, WORDING))
    yield from heard
    origin = scene.origin
    builds = origin is not None and any(
        frame.name in BUILDERS and any(part in frame.file for part in BUILD_FILES)
        for frame in origin.frames
    )
    if builds and not heard:
        says = f"{origin.type if origin else ''} was raised while an extension was compiled"
        yield weighing(26, "suspects-stack", says, origin)
    absent = statement(scene, ABSENT)
    # it was to be there once the build, by this or by another rank, had succeeded
    if absent is not None:
        yield quote(
            26 if absent.origin else 13, "The extension that was built is not there", absent
        )
    if heard or builds or absent is not None:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING) or statement(scene, ABSENT)
    groups = heard.match.groupdict() if heard is not None else {}
    name = groups.get("name") or groups.get("op") or ""
    origin = text_of(scene.origin) if scene.origin is not None else ""
    what = f"the extension {name}" if name else "a native extension"
    why = short(heard.text if heard is not None else origin, 120)
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
