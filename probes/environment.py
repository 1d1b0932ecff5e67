# /// trainprobe
# rung: 20
# ready: quick
# slots: [step]
# question: Do Python, torch, CUDA, NCCL and the driver fit together, and is the right code
#   imported?
# about: job_python
# scope: host
# needs: []
# timeout_s: 30
# climbs: []
# after: []
# means: The interpreter would load another torch or another module than intended, or one that
#   does not fit the driver.
# ///
"""Read versions and the import path of the interpreter that runs this, without importing what it
reads about.

Environment: TRAINPROBE_SCRIPT (its folder comes first on the import path), TRAINPROBE_IMPORTS
(module names, by commas), TRAINPROBE_NEEDED_MODULES (those that the script must find),
TRAINPROBE_OPTIONAL_MODULES (those by which nodes are only compared), PYTHONPATH.
Flags: --script PATH, --imports NAMES. Events: one `note` or `fail` for each check: check, status
(ok|warn|fail), value, says, fix.
"""

from __future__ import annotations

import glob
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import site
import sys
from typing import Dict, Iterator, List, Optional

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _shared import checks
from _shared.proc import read_text

# The least driver for any minor version of a CUDA major: CUDA Toolkit release notes, "CUDA Minor
# Version Compatibility".
LEAST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}
HARMLESS = {"test", "this", "antigravity", "idlelib", "turtledemo", "__main__"}
MOST_FILES = 300
NO_TORCH = "py.torch"


def version_of(*packages: str) -> str:
    for package in packages:
        try:
            return f"{importlib.metadata.version(package)} ({package})"
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def place(module: str, folders: List[str]) -> Optional[str]:
    """The file that an import would run, in these folders alone; a plain folder is none."""
    spec = importlib.machinery.PathFinder.find_spec(module, folders)
    return (
        spec.origin
        if spec is not None and spec.origin not in (None, "built-in", "frozen")
        else None
    )


def versions(folders: List[str]) -> Iterator[checks.Row]:
    sentence = f"Python {sys.version.split()[0]} at {sys.executable}."
    yield "py.python", "ok", sys.version.split()[0], sentence, ""
    torch = place("torch", folders)
    if torch is None:
        fix = (
            f"install it there (`{sys.executable} -m pip install torch`) or name another Python"
            " with --python"
        )
        yield NO_TORCH, "unknown", None, f"{sys.executable} has no torch", fix
        return
    text = read_text(os.path.join(os.path.dirname(torch), "version.py"))
    found = {
        key: value
        for key, value in re.findall(
            r"^(__version__|cuda|hip)\b[^=\n]*= *'?([^'\n]*)'?", text, re.MULTILINE
        )
        if value != "None"
    }
    torch_version, cuda = found.get("__version__") or version_of("torch"), found.get("cuda", "")
    built = (
        f"for CUDA {cuda}"
        if cuda
        else f"for ROCm {found['hip']}"
        if found.get("hip")
        else "for the CPU only"
    )
    sentence = (
        f"torch {torch_version or 'of no known version'}, built {built}, at"
        f" {os.path.dirname(torch)}."
    )
    yield "py.torch", "ok" if torch_version else "fail", torch_version, sentence, "reinstall torch"
    nccl = version_of("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")
    if cuda:
        sentence = (
            f"NCCL {nccl}." if nccl else "No NCCL package: torch brings its own or the system's."
        )
        yield "py.nccl", "ok", nccl, sentence, ""
    gpus = glob.glob("/proc/driver/nvidia/gpus/*") or glob.glob("/dev/nvidia[0-9]*")
    driver_text = re.search(
        r"Kernel Module\D*(\d+)\.(\d+)(?:\.(\d+))?", read_text("/proc/driver/nvidia/version")
    )
    driver = tuple(int(number or 0) for number in driver_text.groups()) if driver_text else ()
    if gpus and not cuda and not found.get("hip"):
        sentence = f"This host has {len(gpus)} NVIDIA GPUs, but torch is built for the CPU only."
        fix = "pip install torch from the index of a CUDA build (pytorch.org/get-started)"
        yield "py.torch.cuda", "fail", len(gpus), sentence, fix
    if driver and cuda:
        least = LEAST_DRIVER.get(int(cuda.split(".")[0]), ())
        sentence = (
            f"Driver {'.'.join(map(str, driver))}; CUDA {cuda} needs at least"
            f" {'.'.join(map(str, least)) or 'an unknown one'}."
        )
        too_old = driver < least and not glob.glob("/usr/local/cuda*/compat/libcuda.so*")
        yield (
            "drv.versions",
            "fail" if too_old else "ok",
            [list(driver), cuda],
            sentence,
            (
                "update the driver, or install a torch for CUDA"
                f" {max((major for major, item in LEAST_DRIVER.items() if item <= driver), default=11)}"  # noqa: E501
            ),
        )
    elif cuda and not driver:
        sentence = f"torch is built for CUDA {cuda}, and no NVIDIA driver is loaded here."
        yield "drv.versions", "ok", None, sentence, ""


def shadowing(imports: List[str], first: List[str], folders: List[str]) -> Iterator[checks.Row]:
    """Find what shadows the standard library or installed packages."""
    standard = set(getattr(sys, "stdlib_module_names", ())) or {
        os.path.splitext(name)[0] for name in os.listdir(os.path.dirname(os.__file__))
    }
    found = []
    for folder in first:
        names = {
            re.split(r"\.", entry)[0]
            for entry in (os.listdir(folder) if os.path.isdir(folder) else ())
        }
        for name in sorted((names & (standard | {*imports, "torch"})) - HARMLESS):
            local = place(name, [folder])
            hidden = (
                "the standard library's"
                if name in standard
                else place(name, [item for item in folders if item not in first])
            )
            if local and hidden and local != hidden:
                found.append(name)
                sentence = (
                    f"{local} hides {hidden} {name}."
                    if name in standard
                    else f"{local} hides {hidden}."
                )
                status = "fail" if name in standard or name == "torch" else "warn"
                fix = f"rename {local}, or start it from elsewhere"
                yield "py.shadow", status, local, sentence, fix
    if not found:
        sentence = f"None of {len(first)} folders at the front of the import path hides a module."
        yield "py.shadow", "ok", [], sentence, ""
    user_site = site.getusersitepackages()
    from_user = [
        name
        for name in imports
        if site.ENABLE_USER_SITE and (place(name, folders) or "").startswith(user_site + os.sep)
    ]
    sentence = (
        f"From the user's own site-packages ({user_site}): {', '.join(from_user) or 'nothing'}."
    )
    status = "warn" if from_user else "ok"
    yield "py.usersite", status, from_user, sentence, "export PYTHONNOUSERSITE=1"
    copies = {
        name: sorted({item for item in (place(name, [folder]) for folder in folders) if item})
        for name in imports
    }
    for name, files in copies.items():
        if len(files) > 1:
            sentence = f"{name} is there {len(files)} times; {place(name, folders)} wins."
            yield "py.copies", "warn", files, sentence, f"pip uninstall {name} until one is left"
    for folder in folders:
        for finder in glob.glob(os.path.join(glob.escape(folder), "__editable___*_finder.py")):
            # setuptools puts it last, so a real copy wins
            for name in re.findall(r"'([A-Za-z_]\w*)': '", read_text(finder)):
                if place(name, folders):
                    sentence = (
                        f"{name} is installed editable, but the copy at {place(name, folders)}"
                        " is what gets imported."
                    )
                    fix = f"pip uninstall {name}, then pip install -e again"
                    yield "py.editable", "warn", name, sentence, fix
    gomp = sorted(
        {
            os.path.realpath(item)
            for folder in folders
            for item in glob.glob(os.path.join(glob.escape(folder), "*", "**", "libgomp*.so*"))
        }
        if len(imports)
        else ()
    )
    status = "warn" if len(gomp) > 1 else "ok"
    fix = "two OpenMP runtimes in a process can hang or slow it; set OMP_NUM_THREADS=1 to see"
    yield "py.lib.dup", status, gomp, f"Copies of libgomp in the packages: {len(gomp)}.", fix


def modules(script: str, first: List[str]) -> Iterator[checks.Row]:
    """Look up what the script imports, as Python would in its folder; nothing is imported."""
    sys.path[:] = [*first, *(folder for folder in sys.path if folder not in first)]
    importlib.invalidate_caches()
    needed, optional = (
        [name for name in os.environ.get(f"TRAINPROBE_{which}_MODULES", "").split(",") if name]
        for which in ("NEEDED", "OPTIONAL")
    )
    missing = [name for name in needed if not is_found(name)]
    for name in optional:
        checks.value(f"module.{name}", "found" if is_found(name) else "missing")
    if script and "TRAINPROBE_SLOT" in os.environ and not os.path.isfile(script):
        yield "py.modules", "fail", script, f"The script {script} is not there.", "copy it there"
    elif needed:
        sentence = (
            f"{sys.executable} does not find {', '.join(missing)}, which"
            f" {os.path.basename(script)} imports."
            if missing
            else f"The {len(needed)} modules that {os.path.basename(script)} imports are found."
        )
        fix = f"{sys.executable} -m pip install the package of {', '.join(missing)}"
        yield "py.modules", "fail" if missing else "ok", missing, sentence, fix


def is_found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def bytecode(folder: str, script: str) -> Iterator[checks.Row]:
    """Find compiled files that Python would run although their source says something else. One with
    another time or size is harmless: it is made anew.

    It fails only for what the script names; anything else in the folder may never be imported.
    """
    parts = set(re.findall(r"\w+", read_text(script))) if script else set()
    stale, old = [], 0
    caches = [
        *glob.glob(f"{glob.escape(folder)}/__pycache__/*.pyc"),
        *glob.glob(f"{glob.escape(folder)}/*/__pycache__/*.pyc"),
    ][:MOST_FILES]
    for cache in caches:
        try:
            source = importlib.util.source_from_cache(cache)
            with open(cache, "rb") as file:
                head = file.read(16)
            if (
                head[:4] != importlib.util.MAGIC_NUMBER
                or ".opt-" in cache
                or not os.path.exists(source)
            ):
                continue
            flags, known = int.from_bytes(head[4:8], "little"), os.stat(source)
            if flags == 0 and head[8:16] != (int(known.st_mtime) & 0xFFFFFFFF).to_bytes(
                4, "little"
            ) + (known.st_size & 0xFFFFFFFF).to_bytes(4, "little"):
                old += 1
            elif flags != 3 and importlib.machinery.SourcelessFileLoader("it", cache).get_code(
                "it"
            ) != compile(read_text(source), source, "exec", dont_inherit=True):
                stale.append(cache)  # both were only compiled, neither was run
        except (OSError, ValueError, EOFError, TypeError, SyntaxError, ImportError):
            continue
    orphans = [
        item for item in glob.glob(f"{glob.escape(folder)}/*.pyc") if not os.path.exists(item[:-1])
    ]
    for item in stale:
        named = not parts.isdisjoint(
            os.path.relpath(importlib.util.source_from_cache(item), folder)[: -len(".py")].split(
                os.sep
            )
        )
        sentence = f"{item} differs from its source, but Python would run it."
        yield "py.bytecode", "fail" if named else "warn", item, sentence, f"rm {item}"
    for item in orphans:
        yield "py.bytecode", "warn", item, f"{item} is importable without a source.", f"rm {item}"
    if not stale and not orphans:
        sentence = (
            f"Compiled files in {folder}: {len(caches)} match their source or will be recompiled"
            f" ({old})."
        )
        yield "py.bytecode", "ok", len(caches), sentence, ""


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.text("--script", "TRAINPROBE_SCRIPT")
    parser.add_argument("--imports", default=os.environ.get("TRAINPROBE_IMPORTS", "torch"))
    asked = parser.parse_args()
    imports = [name.split(".")[0] for name in asked.imports.split(",") if name.strip()]
    folder = os.path.dirname(os.path.realpath(asked.script)) if asked.script else os.getcwd()
    first = list(
        dict.fromkeys(
            [
                folder,
                *(
                    os.path.abspath(item)
                    for item in os.environ.get("PYTHONPATH", "").split(os.pathsep)
                    if item
                ),
            ]
        )
    )
    folders = list(dict.fromkeys([*first, *sys.path]))
    groups: Dict[str, Iterator[checks.Row]] = {
        "versions": versions(folders),
        "shadowing": shadowing(imports, first, folders),
        "bytecode": bytecode(folder, asked.script),
        "modules": modules(asked.script, first),
    }
    rows = checks.report(groups)
    failed = [check for check, status, *_ in rows if status == "fail"]
    without_torch = [
        f"{sentence}; {fix}"
        for check, status, _, sentence, fix in rows
        if (check, status) == (NO_TORCH, "unknown")
    ]
    # not a fault of the environment as such: the wrong interpreter may have been named
    if without_torch and not failed:
        _emit.result("cannot", without_torch[-1])
    if failed:
        _emit.result("no", f"The environment does not fit: {', '.join(sorted(set(failed)))}.")
    _emit.result("yes", "Versions fit, and nothing hides a module.")


if __name__ == "__main__":
    main()
