"""Paths that must be there before the job is submitted: the program, what it sources, its data,
and the folder for output.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator

from trainprobe.sbatch.findings import Finding
from trainprobe.sbatch.plan import Plan, found, skipped
from trainprobe.sbatch.script import Done

PATHS = "plan.paths"
_LOCAL = re.compile(r"/(?:tmp|var/tmp|dev/shm|scratch/local|local(?:scratch)?|localdisk)(?:/|$)")


def check(plan: Plan) -> Iterator[Finding]:
    yield from _paths(plan)


def named_paths(plan: Plan) -> tuple[tuple[str, str, int], ...]:
    """Return the paths that the script names, each with its role and its line: program, source,
    cd, venv, data, image, output.
    """
    named: list[tuple[str, str, int]] = []
    for launch in plan.launches:
        if launch.script and "$" not in launch.script and "\u27ea" not in launch.script:
            named.append((_full(launch.script, launch.done.folder, plan), "program", launch.line))
        named += [(word, "data", launch.line) for word in _path_words(launch.arguments)]
    named += [row for done in plan.script.commands for row in _of_command(plan, done)]
    for name in ("output", "error"):
        option = plan.options.get(name)
        if option is not None and "$" not in option.value:
            folder = os.path.dirname(
                _full(option.value, plan.given("chdir") or plan.here.cwd, plan)
            )
            if "%" not in folder:
                named.append((folder, name, option.line))
    chdir = plan.options.get("chdir")
    if chdir is not None and "$" not in chdir.value:
        named.append((_full(chdir.value, plan.here.cwd, plan), "chdir", chdir.line))
    made: dict[tuple[str, str], int] = {}
    for path, role, line in named:
        if path and len(path) < 4000 and not re.search(r"[*?\[\]]", path):
            made.setdefault((path, role), line)
    return tuple((path, role, line) for (path, role), line in made.items())[:200]


def _of_command(plan: Plan, done: Done) -> Iterator[tuple[str, str, int]]:
    words, name = done.words, done.words[0].rpartition("/")[2]
    given = words[1] if len(words) > 1 and "$" not in words[1] else ""
    if (
        words[0] in ("source", ".") and "/" in given and not done.guarded
    ):  # without a slash it is looked up in PATH, as conda's activate is
        yield _full(given, done.folder, plan), "source", done.line
    elif words[0] == "cd" and given and given != "-":
        yield _full(given, done.folder, plan), "cd", done.line
    elif (
        name in ("conda", "mamba", "micromamba")
        and given == "activate"
        and len(words) > 2
        and words[2].startswith("/")
    ):
        yield words[2], "venv", done.line
    elif name in ("singularity", "apptainer"):
        yield from (
            (_full(word, done.folder, plan), "image", done.line)
            for word in words
            if word.endswith((".sif", ".simg")) and "$" not in word
        )
    elif words[0].startswith("/") and name.startswith("python") and "$" not in words[0]:
        yield words[0], "program", done.line


def _path_words(words: tuple[str, ...]) -> Iterator[str]:
    """Arguments that are absolute paths of what must be there already: not of what the training
    writes.
    """
    for place, word in enumerate(words):
        name, has_value, value = word.partition("=")
        path = value if has_value else word
        before = name if has_value else words[place - 1] if place else ""
        plain = path.startswith("/") and not re.search(r"[$:\u27ea]", path)
        if plain and _READ.search(before) and not _WRITTEN.search(before):
            yield path


_READ = re.compile(
    r"data|dataset|input|train|val|tokenizer|vocab|config|model[_-]?(?:name|path|dir)|pretrained"
    r"|load",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"out|save|log|cache|tmp|dump", re.IGNORECASE)


def _full(path: str, folder: str | None, plan: Plan) -> str:
    if path.startswith("/"):
        return os.path.normpath(path)
    if path.startswith("~/"):
        return os.path.normpath(f"{plan.here.home}/{path[2:]}") if plan.here.home else ""
    base = folder or plan.given("chdir") or plan.here.cwd
    return (
        os.path.normpath(f"{base}/{path}")
        if base and base.startswith("/") and "$" not in base
        else ""
    )


_ROLE = {
    "program": "The program",
    "source": "The file that is sourced",
    "cd": "The folder",
    "venv": "The environment",
    "data": "The path",
    "image": "The image",
}
_ROLE |= {
    "output": "The folder for output",
    "error": "The folder for output",
    "chdir": "The working folder",
}


def _paths(plan: Plan) -> Iterator[Finding]:
    wrong, asked = [], 0
    made = {
        word.rstrip("/")
        for done in plan.script.commands
        if done.words[0]
        in ("mkdir", "install", "git", "cp", "rsync", "tar", "python", "ln", "touch", "wget")
        for word in done.words[1:]
    }
    for path, role, line in named_paths(plan):
        state = plan.here.paths.get(path, "")
        if not state:
            continue
        asked += 1
        local = _LOCAL.match(path) and not _LOCAL.match(plan.here.cwd or "/")
        if state == "missing" and role in ("output", "error"):
            says = (
                f"{_ROLE[role]} {path} (line {line}) is not there, and SLURM makes none: all output"
                " would be lost"
            )
            wrong.append(found(PATHS, "fail", says, f"mkdir -p {path} before sbatch", line, path))
        elif state == "missing" and not (
            local
            or any(path == one or path.startswith(f"{one}/") for one in made if one.startswith("/"))
            or _made_by_name(path, made)
        ):
            says = f"{_ROLE[role]} {path} (line {line}) is not there"
            wrong.append(
                found(PATHS, "fail", says, "correct the path, or make it before sbatch", line, path)
            )
        elif state == "denied":
            wrong.append(
                found(
                    PATHS,
                    "fail",
                    f"{_ROLE[role]} {path} (line {line}) cannot be"
                    f" {'written' if role in ('output', 'error') else 'read'} by you",
                    "chmod, or another path",
                    line,
                    path,
                )
            )
        elif state == "unknown":
            wrong.append(
                found(
                    PATHS,
                    "unknown",
                    f"{path} (line {line}) gave no answer in time: its file system may hang",
                    "ls it by hand",
                    line,
                    path,
                )
            )
        elif (
            local
            and role in ("program", "source", "venv", "image", "data", "chdir")
            and plan.site.known
        ):
            says = (
                f"{_ROLE[role]} {path} (line {line}) lies on this host's own disk, and the nodes"
                " have another"
            )
            wrong.append(found(PATHS, "warn", says, "put it on a shared file system", line, path))
    yield from wrong
    if not wrong:
        yield (
            found(PATHS, "ok", f"{asked} paths are there")
            if asked
            else skipped(PATHS, "The script names no path that could be looked at")
        )


def _made_by_name(path: str, made: set[str]) -> bool:
    return any(
        path.endswith(f"/{one.removeprefix('./')}")
        for one in made
        if one and not one.startswith(("-", "/"))
    )
