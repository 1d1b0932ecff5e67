"""Make the environment `.venv` for `make diagnose` and `make test`: a Python for which torch is to
be had, and pinned packages. `make wheel` and `make site` have environments of their own, without
torch.

    python3 .ci/environment.py [--dev | --build | --site]

Works without root and without ensurepip; needs nothing but the standard library of Python 3.8 or
later. Does nothing when the environment is as the pins want it. pip's own configuration (index,
find-links, proxies) is respected throughout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDERS = {"run": ".venv", "dev": ".venv", "build": ".venv-build", "site": ".venv-site"}
PINS = {
    "run": HERE / "pins.txt",
    "dev": HERE / "pins-dev.txt",
    "build": HERE / "pins-build.txt",
    "site": HERE / "pins-site.txt",
}
# Those of the first two with the hashes of their files, complete for these minor versions.
LOCKED = {"run": HERE / "locked.txt", "dev": HERE / "locked-dev.txt"}
LOCKED_MINORS = (10, 11, 12, 13)
TORCH = (HERE / "torch.txt").read_text(encoding="utf-8").strip()
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own index of builds without CUDA
MINORS = (
    13,
    12,
    11,
    10,
    14,
)  # newest first; 3.14 last, until every pinned package has wheels for it
ASK = (
    "import json, struct, sys; print(json.dumps([sys.version_info[:2], sys.executable,"
    " struct.calcsize('P')]))"
)


def say(text: str) -> None:
    print(f"environment: {text}", flush=True)


def stop(text: str) -> None:
    sys.exit(f"environment: {text}")


def run(*command: str | Path, quiet: bool = False, **more: str) -> bool:
    """Run a command; its output goes to the terminal, or nowhere when `quiet`. `more` is added
    to its environment.
    """
    sink = subprocess.DEVNULL if quiet else None
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        stdout=sink,
        stderr=sink,
        env={**os.environ, **more},
    )
    return done.returncode == 0


def interpreters() -> list[Path]:
    """Pythons 3.10 or later of this machine that start, the preferred minor version first; each
    real path once.
    """
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/3.*/bin"), reverse=True)
    folders += sorted(Path.home().glob(".local/share/uv/python/cpython-3.*/bin"), reverse=True)
    names = ["python3", *(f"python3.{minor}" for minor in MINORS)]
    found: dict[str, int] = {}
    for path in [Path(sys.executable), *(folder / name for folder in folders for name in names)]:
        own = ROOT in path.parents and path.relative_to(ROOT).parts[0] in FOLDERS.values()
        if own or not os.access(path, os.X_OK):
            continue
        try:
            asked = subprocess.run(
                [str(path), "-I", "-c", ASK], capture_output=True, text=True, timeout=20, check=True
            )
            (major, minor), real, pointer_bytes = json.loads(asked.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            # a shim without a version behind it, or something else that calls itself python3
            continue
        if major == 3 and minor in MINORS and pointer_bytes == 8:
            found.setdefault(os.path.realpath(real), minor)
    return [Path(path) for path in sorted(found, key=lambda path: MINORS.index(found[path]))]


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def make_venv(venv: Path, interpreter: Path, others: list[Path]) -> None:
    """Make `venv` from `interpreter` with pip inside, by whichever way this machine offers."""
    shutil.rmtree(venv, ignore_errors=True)
    has_ensurepip = run(interpreter, "-I", "-c", "import ensurepip, venv", quiet=True)
    if has_ensurepip and run(interpreter, "-I", "-m", "venv", venv, quiet=True):
        return
    shutil.rmtree(venv, ignore_errors=True)
    if not run(interpreter, "-I", "-m", "venv", "--without-pip", venv, quiet=True):
        stop(
            f"{interpreter} cannot make a virtual environment; install its venv module (Debian: apt"
            " install python3-venv), or another Python."
        )
    say(f"{interpreter} has no ensurepip; looking for a pip elsewhere")
    pip = pinned("run")["pip"]
    for other in [interpreter, *others]:
        if run(
            other, "-m", "pip", "--python", python_of(venv), "install", "--quiet", pip, quiet=True
        ):  # pip 22.3 and later know --python
            return
    wheels = sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if not wheels:
        from fetch_pip import fetch

        wheels = [fetch(pip, venv)]
    if not run(python_of(venv), "-m", "pip", "install", "--quiet", pip, PYTHONPATH=str(wheels[-1])):
        stop("pip could not install itself; see its message above.")


def pinned(kind: str) -> dict[str, str]:
    """The pins as {name: requirement line}, comments left out."""
    lines = [line.strip() for line in PINS[kind].read_text(encoding="utf-8").splitlines()]
    return {
        line.split("==")[0].lower(): line for line in lines if line and not line.startswith("#")
    }


def minor_of(interpreter: Path) -> int:
    asked = subprocess.run(
        [str(interpreter), "-I", "-c", ASK], capture_output=True, text=True, timeout=20, check=True
    )
    return int(json.loads(asked.stdout)[0][1])


def pip_install(venv: Path, *what: str | Path) -> bool:
    pip = (python_of(venv), "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    return run(*pip, *what)


def offers(venv: Path, interpreter: Path, requirement: str, *source: str) -> bool:
    """Whether `requirement` is to be had as a wheel for `interpreter`. Asks pip, installs
    nothing.
    """
    ask = [
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "--only-binary=:all:",
        *source,
        requirement,
    ]
    pip = (
        python_of(venv),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        interpreter,
        "install",
        "--target",
        venv / "asked",
    )
    return run(*pip, *ask, quiet=True)


def torch_source(venv: Path, candidates: list[Path], has_gpu: bool) -> tuple[Path, list[str]]:
    """The interpreter to use and pip's arguments for torch.

    Without a GPU the build is asked for by its local version `+cpu`, which no CUDA build carries:
    first from the index that pip is configured with, then from PyTorch's. Only when neither has one
    does plain torch follow, gigabytes or not.
    """
    plain: list[tuple[str, list[str]]] = [(TORCH, [])]
    cpu = [
        (f"{TORCH}+cpu", []),
        (f"{TORCH}+cpu", ["--index-url", CPU_INDEX, "--timeout", "15", "--retries", "1"]),
    ]
    carries_label = sys.platform.startswith(
        "linux"
    )  # builds for macOS are CPU builds without the label
    for requirement, source in plain if has_gpu or not carries_label else cpu + plain:
        for candidate in candidates:
            if offers(venv, candidate, requirement, *source):
                if not has_gpu and carries_label and requirement == TORCH:
                    say(
                        "no CPU build of torch is to be had here: taking the default build, which"
                        " can be some gigabytes"
                    )
                return candidate, [requirement, *source]
    tried = ", ".join(str(candidate) for candidate in candidates)
    stop(
        f"{TORCH} is to be had for none of {tried}; install a Python of 3.10 to 3.13, or check"
        " pip's index (pip config list)."
    )
    raise AssertionError


def stamp(kind: str) -> str:
    """What the environment depends on, as one number."""
    pins = (PINS["run"], PINS["dev"]) if kind in ("run", "dev") else (PINS[kind],)
    parts = [
        path.read_bytes()
        for path in (
            *pins,
            *(LOCKED.values() if kind in LOCKED else ()),
            HERE / "torch.txt",
            ROOT / "pyproject.toml",
            Path(__file__),
        )
    ]
    return hashlib.sha256(b"\0".join([kind.encode(), str(ROOT).encode(), *parts])).hexdigest()


def with_torch(venv: Path, kind: str, candidates: list[Path]) -> None:
    """Fill `.venv`: the pins, torch, and trainprobe itself, from this folder."""
    has_gpu = Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()
    chosen, torch = torch_source(venv, candidates, has_gpu)
    if chosen != candidates[0]:
        make_venv(venv, chosen, candidates)
    kinds = ("run", "dev") if kind == "dev" else ("run",)
    hashed = minor_of(chosen) in LOCKED_MINORS and os.environ.get("HASHES") != "no"
    requirements = [part for name in kinds for part in ("-r", (LOCKED if hashed else PINS)[name])]
    if hashed:  # the lists are complete; older versions of pip miss the hash of `coverage[toml]`
        requirements += ["--require-hashes", "--no-deps"]
    constraints = [part for name in ("run", "dev") for part in ("-c", PINS[name])]
    say(f"installing into {venv.name} with {chosen}")
    if not pip_install(venv, "-qq", *requirements):
        stop(
            "the pinned packages could not be installed; see pip's message above."
            + (" (HASHES=no takes an index that builds its files itself.)" if hashed else "")
        )
    say(f"installing {torch[0]}")
    if not pip_install(venv, *constraints, *torch):  # not quiet: this one can take minutes
        stop(f"{torch[0]} could not be installed; see pip's message above.")
    if not pip_install(venv, "-qq", "--no-deps", "--no-build-isolation", "--editable", ROOT):
        stop("trainprobe itself could not be installed; see pip's message above.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for kind, says in (
        ("dev", "also what the tests and the linters need"),
        ("build", "what builds the wheel, in .venv-build"),
        ("site", "what builds the documentation as a site, in .venv-site"),
    ):
        parser.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, default="run", help=says
        )
    kind = parser.parse_args().kind
    venv = ROOT / FOLDERS[kind]
    stamp_file = venv / "environment.stamp"
    fresh = {stamp("run"), stamp("dev")} if kind == "run" else {stamp(kind)}
    if (
        stamp_file.exists()
        and stamp_file.read_text(encoding="utf-8") in fresh
        and run(python_of(venv), "-c", "import sys", quiet=True)
    ):
        return
    candidates = interpreters()
    if not candidates:
        stop(
            f"no Python of 3.10 or later is on PATH (this one is {sys.version.split()[0]}); install"
            " one, for example with uv or pyenv."
        )
    found = ", ".join(str(path) for path in candidates)
    say(f"making {venv.name} ({kind}); found {found}")
    make_venv(venv, candidates[0], candidates[1:])
    if kind in ("run", "dev"):
        with_torch(venv, kind, candidates)
    elif not pip_install(venv, "-qq", "-r", PINS[kind]):
        stop("the pinned packages could not be installed; see pip's message above.")
    stamp_file.write_text(stamp(kind), encoding="utf-8")
    say("ready")


if __name__ == "__main__":
    main()
