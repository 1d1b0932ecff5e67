"""Two pieces of software that do not fit, read out of what their loader, their own check or
Python says of them: which they are, their versions where the text has them, and what to install.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from trainprobe.causes.scene import Scene
from trainprobe.causes.statements import statement, text_of
from trainprobe.facts import LogEvent
from trainprobe.stacks.places import is_library, module_name


class VersionConflict(NamedTuple):
    """`says` is a clause that names both, `{python}` in `command` is the job's interpreter."""

    says: str
    command: str


# The name to install, where it is not that of the module.
_DISTRIBUTIONS = {
    "cv2": "opencv-python",
    "flash_attn_2_cuda": "flash-attn",
    "flash_attn_3_cuda": "flash-attn",
    "google": "protobuf",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "PIL": "pillow",
    "pytorch_lightning": "pytorch-lightning",
    "functorch": "torch",
    "pkg_resources": "setuptools",
    "distutils": "setuptools",
}
# Whose symbol it is, by its name: mangled names of C++ carry the namespace.
_SYMBOLS = (
    (re.compile(r"_ZN?[KVT]{0,3}[NIS]?\w{0,4}?(?:2at|3c10|5torch|6caffe2)|aoti_torch"), "torch"),
    (re.compile(r"nccl"), "NCCL"),
    (re.compile(r"cudnn"), "cuDNN"),
    (re.compile(r"__?nvJitLink|nvJitLink"), "nvJitLink"),
    (re.compile(r"cublas|cusparse|cusolver|cufft|curand|cuda|cu[A-Z]"), "CUDA"),
    (re.compile(r"iJIT_|mkl_"), "MKL"),
    (re.compile(r"_?Py[A-Z_]"), "Python"),
    (re.compile(r"\w{0,20}6google8protobuf"), "protobuf"),
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\](?P<package>[\w.-]{1,100})")
_PYTHON = re.compile(r"[/\\]python(3\.\d{1,2})[/\\]")
_CLASSES = {
    "Accelerator": "accelerate",
    "TrainingArguments": "transformers",
    "Trainer": "transformers",
    "SFTTrainer": "trl",
    "GRPOTrainer": "trl",
    "DPOTrainer": "trl",
    "LoraConfig": "peft",
    "DataLoader": "torch",
    "GradScaler": "torch",
}
_REINSTALL_TORCH = "{python} -m pip install --force-reinstall torch torchvision torchaudio"
_TAKEN_OUT_OF_1_24 = re.compile(r"'(?:bool|int|float|object|complex|str|long|typeDict)\d?'")


def version_conflict(scene: Scene, wording: str = "") -> VersionConflict | None:
    """The pair that the suspects' first exception, the first message with this wording or a line
    of the output about versions tells of; None where only one of the two is known.
    """
    found = statement(scene, wording) if wording else None
    texts = [text_of(scene.origin)] if scene.origin is not None else []
    texts += [found.text] if found is not None else []
    texts += [
        event.line
        for event in scene.of(LogEvent)
        if event.event in ("library-conflict", "abi-mismatch")
    ]
    for pattern, read in _FORMS:
        for text in texts:
            match = pattern.search(text)
            pair = read(match, scene) if match is not None else None
            if pair is not None:
                return pair
    return None


def _importer(scene: Scene, other: str = "") -> str:
    """The installed package whose frame is innermost, other than `other`; "" for the user's own
    program.
    """
    frames = scene.origin.frames if scene.origin is not None else ()
    for frame in reversed(frames):
        if is_library(frame):
            name = module_name(frame.file).partition(".")[0]
            if name != other:
                return _distribution(name)
    return ""


def _distribution(module: str) -> str:
    name = re.split(r"\.cpython|\.abi3|\.so|\.pyd", module)[0]
    return _DISTRIBUTIONS.get(name, name.replace("_", "-") if "attn" in name else name)


def _known(scene: Scene, name: str) -> str:
    """`torch 2.4.0` where the log or a report of the environment tells the version."""
    given = scene.given(f"version.{name.lower()}")
    return f"{name} {given.value}" if given is not None else name


def _numpy(match: re.Match[str], scene: Scene) -> VersionConflict:
    built = _importer(scene, "numpy")
    runs = next(
        (
            event.captured["numpy"]
            for event in scene.of(LogEvent)
            if event.event == "library-conflict" and "numpy" in event.captured
        ),
        match.groupdict().get("numpy") or "",
    ).rstrip(".")
    beside = f"NumPy {runs}" if runs else _known(scene, "numpy").replace("numpy", "NumPy")
    newer = f"   or a newer build of {built}" if built else ""
    return VersionConflict(
        f"{built or 'A module'} was built for NumPy 1 and meets {beside}"
        if runs or "1.x" in match.group(0)
        else f"{built or 'A module'} was built for another NumPy than {_other_numpy(beside)}",
        "{python} -m pip install 'numpy<2'" + newer,
    )


def _other_numpy(beside: str) -> str:
    return f"the installed {beside}" if beside[-1:].isdecimal() else "the installed one"


def _numpy_alias(match: re.Match[str], scene: Scene) -> VersionConflict:
    user, name = _importer(scene, "numpy") or "The program", match.group("name")
    old = "numpy<1.24" if _TAKEN_OUT_OF_1_24.search(f"'{name}'") else "numpy<2"
    return VersionConflict(
        f"{user} uses numpy.{name}, which {_known(scene, 'numpy')} no longer has",
        f"{{python}} -m pip install '{old}'" + ("" if user[0] == "T" else f"   or -U {user}"),
    )


def _required(match: re.Match[str], scene: Scene) -> VersionConflict:
    wanted = re.sub(r"[` ]", "", match.group("wanted"))
    name = re.split(r"[<>=!~]", wanted)[0]
    user = match.groupdict().get("package") or _importer(scene, name) or "The program"
    have = (match.groupdict().get("have") or "").replace("==", " ").strip(" .")
    have = have or next(iter(_versions_of(scene, name)), "")
    finds = f" and finds {have}" if have else ""
    return VersionConflict(f"{user} needs {wanted}{finds}", f"{{python}} -m pip install '{wanted}'")


def _versions_of(scene: Scene, name: str) -> tuple[str, ...]:
    known = _known(scene, name)
    return (known,) if known != name else ()


def _python(match: re.Match[str], _: Scene) -> VersionConflict:
    wanted = match.group("wanted")
    return VersionConflict(
        f"{match.group('package')} needs Python {wanted} and finds {match.group('found')}",
        f"conda create -n fits 'python{wanted}'   (or a module or image with such a Python)",
    )


def _cuda_of_both(match: re.Match[str], _: Scene) -> VersionConflict:
    other = match.group("package")
    return VersionConflict(
        f"{other} was built for CUDA {match.group('theirs')}"
        f" and torch for CUDA {match.group('torch')}",
        f"{{python}} -m pip install --force-reinstall torch {other}   (both from one index)",
    )


def _toolkit(match: re.Match[str], _: Scene) -> VersionConflict:
    return VersionConflict(
        f"nvcc is of CUDA {match.group('found')} and torch was built for CUDA"
        f" {match.group('torch')}",
        f"export CUDA_HOME=/usr/local/cuda-{match.group('torch')}   (the toolkit of torch's CUDA)",
    )


def _operators_of_torchvision(_: re.Match[str], scene: Scene) -> VersionConflict:
    return VersionConflict(
        f"{_known(scene, 'torchvision')} was built for another torch than {_torch(scene)}",
        _REINSTALL_TORCH,
    )


def _torch(scene: Scene) -> str:
    known = _known(scene, "torch")
    return "the installed one" if known == "torch" else f"the installed {known}"


def _xformers(match: re.Match[str], _: Scene) -> VersionConflict:
    return VersionConflict(
        f"xformers was built for PyTorch {match.group('built')}"
        f" and finds PyTorch {match.group('found')}",
        "{python} -m pip install --force-reinstall --no-deps xformers==VERSION   (its releases say"
        " for which torch they are)",
    )


def _cudnn(match: re.Match[str], _: Scene) -> VersionConflict:
    built, found = (
        re.sub(r"[ ()]", "", match.group(name)).replace(",", ".") for name in ("built", "found")
    )
    return VersionConflict(
        f"torch was built against cuDNN {built} and loads cuDNN {found}",
        "env -u LD_LIBRARY_PATH {python} …   (torch then finds the cuDNN that it brings along)",
    )


def _protobuf(match: re.Match[str], scene: Scene) -> VersionConflict:
    package = _distribution(match.group("file").partition("/")[0])
    package = package if "." not in package else _importer(scene, "google") or "The program"
    built, found = match.group("built"), match.group("found")
    return VersionConflict(
        f"{package} was generated for protobuf {built} and finds protobuf {found}",
        f"{{python}} -m pip install 'protobuf>={built}'",
    )


def _old_protobuf(_: re.Match[str], scene: Scene) -> VersionConflict:
    package = _importer(scene, "google")
    return VersionConflict(
        f"{package or 'A module'} was generated for a protobuf before 4 and finds a newer one",
        "{python} -m pip install 'protobuf<=3.20.3'" + (f"   or -U {package}" if package else ""),
    )


def _bitsandbytes(match: re.Match[str], _: Scene) -> VersionConflict:
    wanted = f"{match.group('major')}.{match.group('minor')}"
    return VersionConflict(
        f"bitsandbytes brings no build for CUDA {wanted}, which the installed torch is of",
        "{python} -m pip install -U bitsandbytes   (or a torch of an older CUDA)",
    )


def _driver(match: re.Match[str], scene: Scene) -> VersionConflict:
    """The driver tells the newest CUDA that it knows: 11040 is 11.4."""
    number = int(match.group("found"))
    cuda = scene.given("version.cuda")
    built = f"CUDA {cuda.value}" if cuda is not None else "a newer one"
    return VersionConflict(
        f"The NVIDIA driver knows CUDA {number // 1000}.{number % 1000 // 10} at most and torch was"
        f" built for {built}",
        "{python} -m pip install torch   (from the index of that CUDA; or take a newer driver)",
    )


def _newer_python(match: re.Match[str], scene: Scene) -> VersionConflict:
    """Types joined by `|`, or a name of Python's own library that another Python has."""
    user, name = _importer(scene) or "The program", match.groupdict().get("name")
    frames = scene.origin.frames if scene.origin is not None else ()
    paths = [match.groupdict().get("file") or "", *(frame.file for frame in frames)]
    found = next((f" {place.group(1)}" for path in paths if (place := _PYTHON.search(path))), "")
    says = (
        f"{user} looks for {name} in {match.group('module')}, and the installed Python{found} does"
        " not have it"
        if name
        else f"{user} joins types by `|`, which needs Python 3.10, and runs under an older Python"
        + found
    )
    return VersionConflict(
        says, "{python} --version; conda create -n fits 'python>=3.10'   (or an image with one)"
    )


def _of_the_system(match: re.Match[str], _: Scene) -> VersionConflict:
    """A symbol version that the C or C++ library of the host lacks."""
    wanted, library = match.group("wanted"), match.group("library").rsplit("/", 1)[-1]
    inside = _INSTALLED.search(match.group("needs"))
    user = _distribution(
        inside.group("package") if inside else match.group("needs").rsplit("/", 1)[-1]
    )
    if wanted.startswith(("GLIBCXX", "CXXABI")):
        command = "conda install -c conda-forge libstdcxx-ng; export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH"  # noqa: E501
    else:
        command = (
            f"ldd --version; {{python}} -m pip install --no-build-isolation --no-binary {user}"
            f" {user}   (or an older wheel, or a newer image)"
        )
    return VersionConflict(
        f"{user} needs {wanted}, which the {library} of this host lacks", command
    )


def _symbol(match: re.Match[str], scene: Scene) -> VersionConflict | None:
    """A native module of one package that misses a symbol of another."""
    symbol, path = match.group("symbol"), match.group("library")
    owner = next((name for pattern, name in _SYMBOLS if pattern.match(symbol)), "")
    inside = _INSTALLED.search(path)
    file = path.rsplit("/", 1)[-1]
    user = _distribution(inside.group("package")) if inside else file
    if not owner:
        return None
    if user in ("torch", "nvidia"):
        if owner == "torch":
            return None
        of = file if user == "nvidia" or "/nvidia/" in path else "torch"
        return VersionConflict(
            f"{of} was built for another {owner} than the one that is loaded",
            "env -u LD_LIBRARY_PATH {python} -c 'import torch'; " + _REINSTALL_TORCH,
        )
    if owner != "torch":
        return VersionConflict(
            f"{user} was built for another {owner} than the one that is loaded",
            f"{{python}} -m pip install --force-reinstall --no-cache-dir {user}",
        )
    return VersionConflict(
        f"{user} was built for another torch than {_torch(scene)}",
        _REINSTALL_TORCH
        if user in ("torchvision", "torchaudio")
        else "{python} -m pip install --no-build-isolation --no-cache-dir --force-reinstall"
        f" --no-deps {user}",
    )


def _not_in_it(match: re.Match[str], scene: Scene) -> VersionConflict | None:
    """A name or a module that one package looks for in another."""
    owner, name = match.group("module"), match.group("name")
    user = _importer(scene, owner)
    package = _distribution(owner)
    if user == package:
        return None
    upgrade = f"{user} {package}".strip()
    return VersionConflict(
        f"{user or 'The program'} looks for {name} in {package}, and the installed"
        f" {_known(scene, package)} does not have it",
        f"{{python}} -m pip install -U {upgrade}   or the {package} of the time of"
        f" {user or 'the program'}",
    )


def _argument(match: re.Match[str], scene: Scene) -> VersionConflict | None:
    owner = _CLASSES.get(match.group("class"))
    if owner is None:
        return None
    user = _importer(scene, owner)
    upgrade = f"{user} {owner}".strip()
    return VersionConflict(
        f"{user or 'The program'} passes {match.group('name')} to {match.group('class')} of"
        f" {owner}, and the installed {_known(scene, owner)} does not know it",
        f"{{python}} -m pip install -U {upgrade}   or the {owner} of the time of"
        f" {user or 'the program'}",
    )


_VERSION = r"\d[\w.+-]{0,30}"
_FORMS: tuple[
    tuple[re.Pattern[str], Callable[[re.Match[str], Scene], VersionConflict | None]], ...
] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (
            (
                r"(?P<wanted>[\w.-]{1,60}[<>=!~][\w.<>=!~, -]{1,60}) is required for a normal"
                r" functioning of this module(?:,? but found (?P<have>[\w.=<>!+-]{1,60}))?"
            ),
            _required,
        ),
        (
            (
                r"(?P<package>[\w.-]{1,60} \d[\w.+]{0,30}) requires"
                r" (?P<wanted>[\w.<>=!~,\[\]-]{1,80}),?"
                r" but you have (?P<have>[\w.-]{1,60} \d[\w.+-]{0,30})"
            ),
            _required,
        ),
        (
            (
                r"[Rr]equires (?:at least )?"
                r"`?(?P<wanted>[\w-]{1,40} ?(?:>=|==|<=|>|<|~=) ?[\d.]{1,16})"
            ),
            _required,
        ),
        (
            (
                rf"PyTorch has CUDA Version=(?P<torch>{_VERSION}) and (?P<package>\w{{1,40}})"
                rf" has CUDA Version=(?P<theirs>{_VERSION}?)(?=\.? |\.?$)"
            ),
            _cuda_of_both,
        ),
        (
            (
                r"(?P<package>[\w.-]{1,60})'? requires a different Python:"
                r" (?P<found>\d[\d.]{1,10}) not in '(?P<wanted>[^'\n]{1,40})'"
            ),
            _python,
        ),
        (
            (
                r"detected CUDA version \((?P<found>[\d.]{1,8})\) mismatches the version that was"
                r" used to compile\s{0,2}PyTorch \((?P<torch>[\d.]{1,8})\)"
            ),
            _toolkit,
        ),
        (r"operator torchvision::\w{1,40} does not exist", _operators_of_torchvision),
        (
            (
                rf"PyTorch (?P<built>{_VERSION}) with CUDA \d{{1,6}}"
                rf" \(you have (?P<found>{_VERSION})\)"
            ),
            _xformers,
        ),
        (
            (
                r"cuDNN version incompatibility: PyTorch was compiled\s{1,2}against"
                r" (?P<built>\([\d, ]{3,20}\)) but (?:found runtime version|linked against)"
                r" (?P<found>\([\d, ]{3,20}\))"
            ),
            _cudnn,
        ),
        (
            (
                rf"versions when loading (?P<file>[\w./-]{{1,200}}):"
                rf" gencode (?P<built>{_VERSION})"
                rf" runtime (?P<found>\d[\w.+-]{{0,28}}\w)"
            ),
            _protobuf,
        ),
        (r"Descriptors cannot (?:not )?be created directly", _old_protobuf),
        (
            (
                r"(?P<library>[\w./+-]{1,300}): version"
                r" `(?P<wanted>(?:GLIBCXX|CXXABI|GLIBC)_[\d.]{1,16})'"
                r" not found \(required by (?P<needs>[^)\n]{1,300})\)"
            ),
            _of_the_system,
        ),
        (
            (
                r"(?P<library>[\w./+-]{1,300}\.so[\w.]{0,20}): (?:undefined symbol:|symbol)"
                r" (?P<symbol>\w{1,300})"
            ),
            _symbol,
        ),
        (
            (
                r"compiled using NumPy 1\.x cannot be run in"
                r"(?:\s{1,2}NumPy (?P<numpy>\d[\d.]{0,16}))?"
                r"|_ARRAY_API not found|numpy\.core\.multiarray failed to import"
                r"|numpy\.\w{1,40} size changed, may indicate binary incompatibility"
            ),
            _numpy,
        ),
        (r"module 'numpy' has no attribute '(?P<name>\w{1,40})'", _numpy_alias),
        (r"`?np\.(?P<name>\w{1,40})`? was removed in the NumPy 2", _numpy_alias),
        (
            r"libbitsandbytes_cuda(?P<major>\d\d)(?P<minor>\d)(?:_\w{1,20})?\.(?:so|dll)",
            _bitsandbytes,
        ),
        (r"driver on your system is too old \(found version (?P<found>\d{4,6})\)", _driver),
        (
            (
                r"unsupported operand type\(s\) for \|: '(?:type|ABCMeta|_\w{1,40})'"
                r" and '(?:NoneType|type|ABCMeta)'"
            ),
            _newer_python,
        ),
        (
            (
                r"cannot import name '(?P<name>\w{1,60})' from '(?P<module>\w{1,40})' \("
                r"(?P<file>[^)\n]{1,200}/python3\.\d{1,2}/(?!(?:site|dist)-p)[^)\n]{1,80})"
            ),
            _newer_python,
        ),
        (
            r"cannot import name '(?P<name>\w{1,100})' from '(?P<module>\w{1,60})[\w.]{0,200}'",
            _not_in_it,
        ),
        (r"No module named '(?P<module>\w{1,60})\.(?P<name>[\w.]{1,200})'", _not_in_it),
        (
            (
                r"module '(?P<module>\w{1,60})(?:\.[\w.]{1,100})?' has no attribute"
                r" '(?P<name>\w{1,100})'"
            ),
            _not_in_it,
        ),
        (
            (
                r"\b(?P<class>[A-Z]\w{1,60})\.\w{1,60}\(\) got an unexpected keyword argument"
                r" '(?P<name>\w{1,60})'"
            ),
            _argument,
        ),
    )
)
