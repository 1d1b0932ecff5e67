"""Paths that must exist before the job is submitted, and an output file for each job."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator

from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.schedulers import SLURM
from trainprobe.sbatch.script import Invocation

PATHS, OUTPUT = CHECKS = Check("plan.paths"), Check("plan.output")
_LOCAL = re.compile(r"/(?:tmp|var/tmp|dev/shm|scratch/local|local(?:scratch)?|localdisk)(?:/|$)")
_READ = re.compile(
    r"data|dataset|input|train|val|tokenizer|vocab|config|model[_-]?(?:name|path|dir)|pretrained"
    r"|load",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"out|save|log|cache|tmp|dump", re.IGNORECASE)
_MAKERS = ("mkdir", "install", "git", "cp", "rsync", "tar", "python", "ln", "touch", "wget")
_UNIQUE = re.compile(r"%\d*[jAaJsNntu]|%x.*%\d*[jAa]")
_OUTPUTS = ("output", "error")
_ROLES = {
    "program": "The program",
    "source": "The sourced file",
    "cd": "The folder",
    "venv": "The environment",
    "data": "The path",
    "image": "The image",
    "output": "The output folder",
    "error": "The output folder",
    "chdir": "The working folder",
}


def check(plan: Plan) -> Iterator[Finding]:
    yield from _paths(plan)
    if plan.script.scheduler is SLURM:
        yield from list(_output(plan)) or [_separate_output(plan)]
    else:
        yield OUTPUT.skip("Only the names that SLURM gives to output files are known here")


def named_paths(plan: Plan) -> tuple[tuple[str, str, int], ...]:
    """Return the paths that the script names, each with its role and its line. The roles are
    program, source, cd, venv, data, image, output, error, and chdir.
    """
    named: list[tuple[str, str, int]] = []
    for launch in plan.launches:
        if launch.script and not re.search("[$\u27ea]", launch.script):
            named.append((_full(launch.script, launch.run.folder, plan), "program", launch.line))
        named += [
            (value, "data", launch.line)
            for name, value in launch.named_values
            if value.startswith("/")
            and not re.search(r"[$:\u27ea]", value)
            and _READ.search(name)
            and not _WRITTEN.search(name)
        ]
    named += [row for run in plan.script.commands for row in _paths_of_command(plan, run)]
    for name in (*_OUTPUTS, "chdir"):
        option = plan.options.get(name)
        if option is None or "$" in option.value:
            continue
        if name == "chdir":
            path = _full(option.value, plan.login.cwd, plan)
        else:
            path = os.path.dirname(_full(option.value, None, plan))
        if name == "chdir" or "%" not in path:
            named.append((path, name, option.line))
    first_lines: dict[tuple[str, str], int] = {}
    for path, role, line in named:
        if path and len(path) < 4000 and not re.search(r"[*?\[\]]", path):
            first_lines.setdefault((path, role), line)
    return tuple((path, role, line) for (path, role), line in first_lines.items())[:200]


def _paths_of_command(plan: Plan, run: Invocation) -> Iterator[tuple[str, str, int]]:
    words, name = run.words, run.words[0].rpartition("/")[2]
    target = words[1] if len(words) > 1 and "$" not in words[1] else ""
    if words[0] in ("source", "."):
        # without a slash it is looked up in PATH, as conda's activate is
        if "/" in target and not run.command.guarded:
            yield _full(target, run.folder, plan), "source", run.line
    elif words[0] == "cd" and target not in ("", "-"):
        yield _full(target, run.folder, plan), "cd", run.line
    elif name in ("conda", "mamba", "micromamba"):
        if target == "activate" and len(words) > 2 and words[2].startswith("/"):
            yield words[2], "venv", run.line
    elif name in ("singularity", "apptainer"):
        for word in words:
            if word.endswith((".sif", ".simg")) and "$" not in word:
                yield _full(word, run.folder, plan), "image", run.line
    elif words[0].startswith("/") and name.startswith("python") and "$" not in words[0]:
        yield words[0], "program", run.line


def _full(path: str, folder: str | None, plan: Plan) -> str:
    """The absolute path, empty where it cannot be known."""
    if path.startswith("/"):
        return os.path.normpath(path)
    if path.startswith("~/"):
        return os.path.normpath(f"{plan.login.home}/{path[2:]}") if plan.login.home else ""
    base = folder or plan.option("chdir") or plan.login.cwd
    return os.path.normpath(f"{base}/{path}") if base.startswith("/") and "$" not in base else ""


def _paths(plan: Plan) -> Iterator[Finding]:
    made = {
        word.rstrip("/")
        for run in plan.script.commands
        if run.words[0] in _MAKERS
        for word in run.words[1:]
    }
    rows = [
        (path, role, line, plan.login.paths[path])
        for path, role, line in named_paths(plan)
        if plan.login.paths.get(path)
    ]
    wrong = [finding for row in rows for finding in _path(plan, *row, made)]
    if rows:
        yield from wrong or [PATHS.ok(f"All {len(rows)} paths exist")]
    else:
        yield PATHS.skip("The script names no path that could be checked")


def _path(
    plan: Plan, path: str, role: str, line: int, state: str, made: set[str]
) -> Iterator[Finding]:
    local = bool(_LOCAL.match(path)) and not _LOCAL.match(plan.login.cwd or "/")
    path_is = f"{_ROLES[role]} {path} (line {line})"
    # without SLURM this may be another machine than the one where sbatch is run
    failed = PATHS.fail if plan.site.known else PATHS.warn
    if state == "missing" and role in _OUTPUTS:
        name = plan.script.scheduler.name
        says = f"{path_is} does not exist, and {name} does not create it: all output would be lost"
        if _made_in_script(path, made):
            says += "; the mkdir of the script comes after SLURM has opened the file"
        if not plan.site.known and not plan.options[role].value.startswith("/"):
            failed = PATHS.likely
        yield failed(says, f"mkdir -p {path} before sbatch", line, path)
    elif state == "missing" and not local and not _made_in_script(path, made):
        fix = "correct the path, or create it before sbatch"
        yield failed(f"{path_is} does not exist", fix, line, path)
    elif state == "denied":
        access = "write" if role in _OUTPUTS else "read"
        yield PATHS.fail(
            f"You cannot {access} {path} (line {line})", "chmod, or another path", line, path
        )
    elif state == "unknown":
        says = f"{path} (line {line}) did not answer in time: its file system may hang"
        yield PATHS.unknown(says, "run ls on it by hand", line, path)
    elif local and role not in (*_OUTPUTS, "cd") and plan.site.known:
        says = f"{path_is} is on this host's own disk, which the nodes do not see"
        yield PATHS.warn(says, "put it on a shared file system", line, path)


def _made_in_script(path: str, made: set[str]) -> bool:
    return any(
        (path == name or path.startswith(f"{name}/"))
        if name.startswith("/")
        else path.endswith(f"/{name.removeprefix('./')}")
        for name in made
        if name and not name.startswith("-")
    )


def _output(plan: Plan) -> Iterator[Finding]:
    array = "array" in plan.options
    for name in _OUTPUTS:
        option = plan.options.get(name)
        if option is None or option.value in ("/dev/null", "none"):
            continue
        separate = re.search(r"%\d*[ajJ]", option.value) if array else _UNIQUE.search(option.value)
        if separate:
            continue
        right = _unique(option.value, array=array)
        file = f"--{name}={option.value} ({option.where})"
        line, edits = max(0, option.line), plan.setting(name, right)
        if array:
            says = f"All tasks of the array write to {file}: they overwrite each other"
            yield OUTPUT.fail(says, f"--{name}={right}", line, option.value, edits)
        else:
            says = f"Every job writes to {file}: the next job overwrites it"
            yield OUTPUT.warn(says, f"--{name}={right}", line, option.value, edits)


def _separate_output(plan: Plan) -> Finding:
    return OUTPUT.ok(f"Each job writes to its own file, {plan.option('output') or 'slurm-%j.out'}")


def _unique(path: str, *, array: bool) -> str:
    stem, dot, ending = path.rpartition(".")
    mark = "%A_%a" if array else "%j"
    stem = re.sub(r"[-_.]?%A", "", stem) if array else stem
    return f"{stem}-{mark}.{ending}" if dot and "/" not in ending else f"{path}-{mark}"
