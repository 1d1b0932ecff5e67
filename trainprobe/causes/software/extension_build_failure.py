"""A native extension does not build.

An extension that is built when first used needs a compiler, ninja and a CUDA toolkit that fit torch. Where they do not, the first rank to load it raises.

It is recognised by torch's "Error building extension" and by nvcc's and ninja's own words, in the exception of the first rank to die or in its output.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken, text_of
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/utils/cpp_extension.py (1.0 to 2.13), nvcc, setuptools, DeepSpeed's op_builder, Triton's build.py.
WORDING = (
    r"Error building extension '(?P<name>[^']{1,100})'|Error compiling objects for extension|Ninja is required to load C\+\+ extensions|ninja: command not found"
    r"|nvcc fatal|CUDA_HOME environment variable is not set|CUDA_HOME does not exist|CUDA was not found on the system|nvcc not found|The detected CUDA version .{0,40} mismatches"
    r"|Installed CUDA version .{0,20} does not match the version torch was compiled with|unsupported GNU version|You need C\+\+17 to compile PyTorch"
    r"|is less than the minimum required version|Failed to find C compiler|InvalidCxxCompiler|Unable to JIT load the (?P<op>\w{1,60}) op"
    r"|error: command '[^'\n]{1,200}(?:gcc|g\+\+|nvcc|cl\.exe|ninja|c\+\+)[^'\n]{0,60}' failed|MSVC is required to load C\+\+ extensions|subprocess.{0,80}ninja.{0,40}returned non-zero"
    r"|Python\.h: No such file"
)
ABSENT = r"torch_extensions/[\w./-]{1,200}/(?P<name>\w{1,80})\.so: cannot open shared object file"


BUILDERS = (
    *("_run_ninja_build", "_write_ninja_file_and_build_library", "_build_extension_module", "verify_ninja_availability"),
    *("_run_compile_cmd", "run_compile_cmd", "compile_file", "_build"),  # inductor's C++ and triton's launchers
)
BUILD_FILES = ("cpp_extension", "torch/_inductor/cpp_builder", "torch/_inductor/codecache", "triton/common/build", "triton/runtime/build")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = tuple(spoken(scene, WORDING))
    yield from heard
    origin = scene.origin
    builds = origin is not None and any(frame.name in BUILDERS and any(part in frame.file for part in BUILD_FILES) for frame in origin.frames)
    if builds and not heard:
        yield weighing(26, "suspects-stack", f"{origin.type if origin else ''} was raised while an extension was compiled", origin)
    absent = said(scene, ABSENT)
    if absent is not None:  # it was to be there once the build, by this or by another rank, had succeeded
        yield weighing(26 if absent.origin else 13, "suspects-log", f"The extension that was built is not there: {short(absent.text, 120)}", absent.fact)
    if heard or builds or absent is not None:
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, ABSENT)
    groups = heard.match.groupdict() if heard is not None else {}
    name = groups.get("name") or groups.get("op") or ""
    return sentence(
        f"{subject(scene)} could not build {f'the extension {name}' if name else 'a native extension'}: {short(heard.text, 120) if heard is not None else short(text_of(scene.origin), 120) if scene.origin is not None else ''}"
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
    accounts_for=("import-failure", "abi-mismatch"),
    wording=rf"{WORDING}|{ABSENT.replace('?P<name>', '?:')}",
)
