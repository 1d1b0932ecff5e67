"""The target's Python: the one that runs the probes and the script. It is asked, with a deadline, and never imported from."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.system.run import run
from trainprobe.targets.script import parse_answer

ASK_S = 20.0
OLDEST = (3, 9)
USUAL_STACK = ("numpy", "torch", "transformers", "datasets", "accelerate", "lightning", "pytorch_lightning", "deepspeed", "peft", "flash_attn", "wandb")

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
"""


@dataclass(frozen=True)
class Interpreter:
    """What one Python says of itself.

    `torch` and `cuda` are version texts (`cuda` None for a CPU build). `gloo` and `nccl` are guesses from its files.
    `reason` says in one sentence why nothing that needs torch can run in it, empty when it can.
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


def choose(asked: str | None, command: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the path of the target's Python and what it was chosen by.

    The order: `--python`, the Python of the command's own launcher, the active environment, the Python that runs this tool.
    """
    if asked:
        return _resolve(asked), "--python"
    of_command = _of_command(command, environ)
    if of_command:
        return of_command, "the command"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variable == "CONDA_PREFIX" and environ.get("CONDA_DEFAULT_ENV") == "base":
            continue  # base is active for everybody who has conda; it says nothing about the job
        candidate = os.path.join(environ.get(variable, ""), "bin", "python")
        if environ.get(variable) and os.access(candidate, os.X_OK):
            return candidate, variable
    return sys.executable, "the Python of this tool"


def ask(path: str, chosen_by: str = "", modules: Iterable[str] = USUAL_STACK) -> Interpreter:
    """Ask the Python at `path` who it is.

    Raises UsageError when it cannot be executed, does not answer as a Python, or is older than 3.9.
    """
    if not os.path.isfile(path):
        raise UsageError(f"The interpreter {path} does not exist.", "Give the path of a Python with --python.")
    if not os.access(path, os.X_OK):
        raise UsageError(f"The interpreter {path} is not executable.", "Give the path of a Python with --python.")
    ran = run([path, "-c", _QUESTION, *dict.fromkeys(("torch", *modules))], timeout_s=ASK_S)
    if ran.ended.how == "timed_out":
        raise UsageError(f"The interpreter {path} did not answer within {ASK_S:.0f} s.", f"Try `{path} -c 'print(1)'` by hand, or give another with --python.")
    if ran.ended.how == "not_started":
        raise UsageError(f"The interpreter {path} cannot be started: {ran.ended.reason}.", "Give the path of a Python with --python.")
    answer = parse_answer(ran.stdout)
    if answer is None or not re.match(r"\d+\.\d+", str(answer.get("version", ""))):
        raise UsageError(f"{path} does not answer as a Python.", "Give the path of a Python with --python.")
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
        raise UsageError(f"The interpreter {path} is Python {version}; the probes need 3.9 or newer.", "Give a newer Python with --python.")
    torch = answer.get("torch_version") or answer.get("torch_metadata")
    reason = ""
    if not answer.get("torch_at"):
        torch, reason = None, f"{path} has no torch; install it there (`{path} -m pip install torch`) or name another Python with --python"
    elif not answer.get("torch_is_package") or not torch:
        torch, reason = None, f"the torch that {path} finds at {answer['torch_at']} is not PyTorch; move it away or name another Python with --python"
    found = answer.get("found")
    return Interpreter(
        path=path,
        version=version,
        prefix=str(answer.get("prefix", "")),
        torch=str(torch) if torch else None,
        cuda=str(answer["torch_cuda"]) if torch and answer.get("torch_cuda") else None,
        gloo=bool(torch),
        nccl=bool(torch and answer.get("nccl")),
        installed=tuple(name for name, there in found.items() if there) if isinstance(found, dict) else (),
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
        raise UsageError(f"The interpreter {asked} is not on the PATH.", "Give its full path with --python.")
    return found


def _of_command(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the Python of `python …` or of a launcher script such as torchrun, by its first line."""
    program = shutil.which(command[0], path=environ.get("PATH")) if command and not command[0].endswith(".py") else None
    if not program:
        return None
    if re.fullmatch(r"python[\d.]*", os.path.basename(program)):
        return program
    try:
        with open(program, "rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    match = re.match(rb"#!\s*(\S*/python[\d.]*)\s*$", first.rstrip(b"\r\n"))
    return os.fsdecode(match.group(1)) if match and os.access(match.group(1), os.X_OK) else None
