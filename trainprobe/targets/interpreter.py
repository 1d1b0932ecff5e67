"""The target's Python, which runs probes and script: asked in a child, never imported from."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.system.answering import silent
from trainprobe.system.run import run
from trainprobe.targets.script import parse_answer

ASK_S = 20.0
OLDEST = (3, 9)
REMEDY = "Give the path of a Python with --python."
ON_PATH, OF_THE_TOOL = "PATH", "the Python of this tool"
USUAL_STACK = tuple(
    """
    numpy torch transformers datasets accelerate lightning pytorch_lightning deepspeed peft
    flash_attn wandb
    """.split()
)

# Plain enough for Python 2 to run it, so that an old interpreter is named as old and not as broken.
_QUESTION = r"""
import sys
if sys.path and sys.path[0] == "":
    del sys.path[0]  # the folder that the tool happens to be started in is not on a script's path
answer = {"version": "%d.%d.%d" % tuple(sys.version_info[:3]), "prefix": sys.prefix, "executable": sys.executable}
try:
    import ast, json, os
    from importlib import metadata, util
    found = {}
    for name in sys.argv[1:]:
        try:
            spec = util.find_spec(name)
            found[name] = bool(spec is not None)
        except Exception:
            spec, found[name] = None, False
        if name == "torch" and spec is not None:
            answer["torch_at"] = spec.origin
            answer["torch_is_package"] = bool(spec.submodule_search_locations)
            for folder in list(spec.submodule_search_locations or []):
                try:
                    with open(os.path.join(folder, "version.py")) as file:
                        for node in ast.parse(file.read()).body:
                            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
                            for target in targets:
                                if getattr(target, "id", "") in ("__version__", "cuda", "hip") and isinstance(node.value, ast.Constant):
                                    answer["torch_" + target.id.strip("_")] = node.value.value
                except Exception:
                    pass
                answer["nccl"] = any(os.path.exists(os.path.join(folder, "lib", n)) for n in ("libtorch_cuda.so", "libtorch_hip.so"))
    answer["found"] = found
    try:
        answer["torch_metadata"] = metadata.version("torch")
    except Exception:
        answer["torch_metadata"] = None
except ImportError:
    pass
try:
    text = json.dumps(answer)
except NameError:
    text = '{"version": "%s"}' % answer["version"]
sys.stdout.write("\nTRAINPROBE " + text + "\n")
"""  # noqa: E501


@dataclass(frozen=True)
class Interpreter:
    """What one Python says of itself.

    `torch` and `cuda` are version texts (`cuda` None for a CPU build). `gloo` and `nccl` are
    guesses from its files. `reason` says in one sentence why nothing that needs torch can run in
    it, empty when it can. `note` says why it was chosen, where another could have been expected.
    """

    path: str
    version: str
    prefix: str = ""
    torch: str | None = None
    cuda: str | None = None
    gloo: bool = False
    nccl: bool = False
    installed: tuple[str, ...] = ()
    chosen_by: str = ""
    reason: str = ""
    note: str = ""


def find(
    asked: str | None,
    command: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    modules: Iterable[str] = USUAL_STACK,
) -> Interpreter:
    """Return the Python of the job.

    The order: `--python`, the Python of the command's own launcher, the first on PATH, and last
    the Python of this tool: where the first on PATH cannot run anything that needs torch and it
    can. Raises UsageError for a Python that does not answer.
    """
    path, chosen_by = choose(asked, command, environ)
    if chosen_by != ON_PATH:
        return ask(path, chosen_by, modules)
    try:
        interpreter = ask(path, chosen_by, modules)
        why = interpreter.reason and "has no torch"
    except UsageError as error:
        interpreter, why = None, f"cannot be used ({error})"
    if interpreter is not None and not why:
        return replace(interpreter, note=_inactive(interpreter, environ))
    try:
        own = ask(sys.executable, OF_THE_TOOL, modules)
    except UsageError:
        own = None
    if own is not None and not own.reason:
        says = (
            f"{path}, the first Python on PATH, {why}: {own.path}, the Python of this tool, ran"
            " instead."
        )
        return replace(own, note=says)
    return interpreter if interpreter is not None else ask(path, chosen_by, modules)


def choose(
    asked: str | None, command: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """Return the Python that was asked for or that the shell would take, and why."""
    if asked:
        return _resolve(asked), "--python"
    of_command = _of_command(command, environ)
    if of_command:
        return of_command, "the command"
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in filter(None, folders):
        for path in (os.path.join(folder, name) for name in ("python", "python3")):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path, ON_PATH
    return sys.executable, OF_THE_TOOL


def _inactive(interpreter: Interpreter, environ: Mapping[str, str]) -> str:
    """Say so where an environment is named that the first Python on PATH does not belong to."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environ.get(variable, "")
        if not folder or not os.access(os.path.join(folder, "bin", "python"), os.X_OK):
            continue
        if variable == "CONDA_PREFIX" and environ.get("VIRTUAL_ENV"):
            continue  # a virtual environment made inside of a conda environment
        if os.path.realpath(folder) not in (
            os.path.realpath(interpreter.prefix),
            os.path.dirname(os.path.dirname(interpreter.path)),
        ):
            return (
                f"{interpreter.path} is the first Python on PATH, and is not the one of"
                f" {variable}={folder}."
            )
    return ""


def ask(path: str, chosen_by: str = "", modules: Iterable[str] = USUAL_STACK) -> Interpreter:
    """Ask the Python at `path` who it is.

    Raises UsageError when it cannot be executed, does not answer as a Python, or is older than 3.9.
    """
    silence = silent(path)
    if silence:
        raise UsageError(f"The interpreter {path} cannot be asked: {silence}.", REMEDY)
    if not os.path.isfile(path):
        raise UsageError(f"The interpreter {path} does not exist.", REMEDY)
    if not os.access(path, os.X_OK):
        raise UsageError(f"The interpreter {path} is not executable.", REMEDY)
    ran = run([path, "-c", _QUESTION, *dict.fromkeys(("torch", *modules))], timeout_s=ASK_S)
    if ran.ended.how == "timed_out":
        raise UsageError(
            f"The interpreter {path} did not answer within {ASK_S:.0f} s.",
            f"Try `{path} -c 'print(1)'` by hand, or give another with --python.",
        )
    if ran.ended.how == "not_started":
        raise UsageError(f"The interpreter {path} cannot be started: {ran.ended.reason}.", REMEDY)
    answer = parse_answer(ran.stdout)
    if answer is None or not re.match(r"\d+\.\d+", str(answer.get("version", ""))):
        raise UsageError(f"{path} does not answer as a Python.", REMEDY)
    return from_answer(path, answer, chosen_by)


def installed(path: str, modules: Iterable[str]) -> tuple[str, ...]:
    """Return those of `modules` that the Python at `path` would find, without importing them."""
    ran = run([path, "-c", _QUESTION, *modules], timeout_s=ASK_S)
    found = (parse_answer(ran.stdout) or {}).get("found")
    return tuple(name for name in modules if isinstance(found, dict) and found.get(name))


def from_answer(path: str, answer: Mapping[str, Any], chosen_by: str = "") -> Interpreter:
    """Build the `Interpreter` from the parsed answer. Raises UsageError when it is too old."""
    version = str(answer["version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise UsageError(
            f"The interpreter {path} is Python {version}; the probes need 3.9 or newer.",
            "Give a newer Python with --python.",
        )
    torch = answer.get("torch_version") or answer.get("torch_metadata")
    reason = ""
    if not answer.get("torch_at"):
        reason = (
            f"{path} has no torch; install it there (`{path} -m pip install torch`) or name"
            " another Python with --python"
        )
    elif not answer.get("torch_is_package") or not torch:
        reason = (
            f"the torch that {path} finds at {answer['torch_at']} is not PyTorch; move it away"
            " or name another Python with --python"
        )
    torch = None if reason else torch
    found = answer["found"] if isinstance(answer.get("found"), dict) else {}
    return Interpreter(
        path=path,
        version=version,
        prefix=str(answer.get("prefix", "")),
        torch=str(torch) if torch else None,
        cuda=str(answer["torch_cuda"]) if torch and answer.get("torch_cuda") else None,
        gloo=bool(torch),
        nccl=bool(torch and answer.get("nccl")),
        installed=tuple(name for name, there in found.items() if there),
        chosen_by=chosen_by,
        reason=reason,
    )


def _resolve(asked: str) -> str:
    if os.sep in asked:
        if os.path.isdir(asked):
            return os.path.join(asked, "bin", "python")
        return os.path.abspath(asked)
    found = shutil.which(asked)
    if not found:
        raise UsageError(
            f"The interpreter {asked} is not on the PATH.", "Give its full path with --python."
        )
    return found


def _of_command(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the Python of the first word that is one, or that is a launcher such as torchrun: by
    its first lines.

    `env`, `numactl` and the like stand before it; behind the script there are only its arguments.
    """
    for word in command:
        if word.endswith((".py", ".pyw")):
            return None
        program = None if word.startswith("-") else shutil.which(word, path=environ.get("PATH"))
        found = _python_of(program, environ) if program else None
        if found:
            return found
    return None


def _python_of(program: str, environ: Mapping[str, str]) -> str | None:
    if re.fullmatch(r"python[\d.]*", os.path.basename(program)):
        return program
    try:
        with open(program, "rb") as file:
            first, second = (os.fsdecode(file.readline(512)).strip() for _ in range(2))
    except OSError:
        return None
    by_env = re.match(r"#!\s*/\S*/env\s+(?:-S\s+)?(python[\d.]*)(?:\s|$)", first)
    if by_env:
        return shutil.which(by_env[1], path=environ.get("PATH"))
    # Where the path is long or has a space in it, pip writes a shell script of two lines.
    match = re.match(r"#!\s*(/\S*/python[\d.]*)(?:\s|$)", first)
    if first == "#!/bin/sh":
        match = re.match(r"'''exec' \"?(/.*?/python[\d.]*)\"?(?:\s|$)", second)
    return match[1] if match and os.access(match[1], os.X_OK) else None
