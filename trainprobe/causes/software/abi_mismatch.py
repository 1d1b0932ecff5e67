"""A native module was built for another torch, C++ runtime or Python.

A wheel compiled against torch 2.4 beside torch 2.6, a system libstdc++ older than the one it was built with, a CUDA library of another major
version: the loader finds no such symbol or file, at import or at the first call.

It is recognised by the loader's words, of the import probe or of the rank that failed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, ImportTried
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# The dynamic loader (ld.so) and torch's own check of an extension.
WORDING = (
    r"undefined symbol|Symbol not found: |(?:GLIBCXX|CXXABI|GLIBC|GCC|GOMP)_[\d.]+' not found|symbol lookup error"
    r"|lib(?:torch|c10|cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|cupti|nvrtc|nvToolsExt|nvJitLink|nccl|caffe2|shm|mkl|iomp|gomp|stdc\+\+|amdhip|rocblas|miopen)"
    r"\S{0,60}(?:\.so\S{0,12}|\.dylib).{0,40}(?:cannot open shared object file|not found)|Library not loaded: .{0,120}lib(?:torch|c10|omp)"
    r"|compiled (?:for|with|against) a different version of (?:torch|PyTorch)|compiled with different CUDA|DLL load failed(?: while importing \S{1,100})?: The specified p"
    r"|\[WinError (?:127|182|1114)\]|operator torchvision::\w+ does not exist|Couldn't load custom C\+\+ ops|(?:ABI|abi) (?:mismatch|incompatib)"
    r"|ImportError: .{0,200}\.so: (?:undefined|wrong ELF class|invalid ELF header)"
)
MODULE = re.compile(r"([\w./-]+\.so[\w.]*)")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    if heard is None:
        return
    if isinstance(heard.fact, ImportTried):
        yield weighing(26, "probe-outcome", f"`import {heard.fact.module}` alone fails in the loader: {short(heard.text)}", heard.fact)
    else:
        yield from spoken(scene, WORDING, log_points=26)
    yield weighing(10, "suspects-stack", "The dynamic loader itself says so, before any code of the module ran", heard.fact)
    yield from first_to_fail(scene)


def _module(scene: Scene) -> str:
    heard = said(scene, WORDING)
    match = MODULE.search(heard.text) if heard is not None else None
    return match.group(1).rsplit("/", 1)[-1] if match else ""


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, name = said(scene, WORDING), _module(scene)
    return sentence(f"{name or 'A native module'} does not fit the installed torch or runtime{f': {short(heard.text, 140)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    return (
        fix(
            scene,
            "Rebuild it for the torch that is installed",
            f"{python} -m pip install --no-build-isolation --no-cache-dir --force-reinstall PACKAGE",
            verify=f"{python} -c 'import torch, <MODULE>'",
        ),
        fix(scene, "Or take the pair that fits", f"{python} -m pip list | grep -i -E 'torch|nvidia'   (and the package's table of versions)"),
    )


CAUSE = Cause(
    id="abi-mismatch",
    title="A native module was built for another version",
    means="A native module was built for another torch, C++ runtime or CUDA.",
    telling="undefined symbol, GLIBCXX not found, libtorch or libcudart that cannot be opened.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ldd -r on the module that the message names",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
)
