"""A batch script as a whole: its options by precedence, and each command with the variables that it
would have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainprobe.sbatch.directives import Flaw
from trainprobe.sbatch.expanding import (
    ELEMENT_END,
    OWN_OF_TASK,
    elements_of,
    expand,
    expanded,
    frozen,
)
from trainprobe.sbatch.layout import shape, variables
from trainprobe.sbatch.mpi_launchers import PROGRAMS, remote_words, step_options
from trainprobe.sbatch.options import FROM_ENVIRONMENT, Option, options_of
from trainprobe.sbatch.schedulers import PBS, SLURM, Scheduler, scheduler_of, settled
from trainprobe.sbatch.shell import ASSIGNED, Command, commands

MOST_TEXT = 300_000
MOST_FLAWS = 50
MOST_INVOCATIONS = 4000
DEEPEST = 4
MOST_FILES = 20
_OF_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_BY_OPTION = {
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS": "gpus",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_JOB_NAME": "job-name",
    "SLURM_JOB_PARTITION": "partition",
}
LAUNCHERS = re.compile(r"(?:.*/)?(?:torchrun|accelerate|deepspeed|python[0-9.]*)")
_SCRIPT_NAME = re.compile(r"(?:[\w.+@-]+/)*[\w.+@-]+\.(?:sh|bash)")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")


@dataclass(frozen=True)
class Step:
    """An srun: its options, the command that is it, and the words that it starts. `limited` says
    which --export keeps variables of the batch shell from its tasks, "" where none does; `lost`
    are those that the script exports and the tasks lack. `program` is srun or another that starts
    tasks, such as mpirun; its options are given by the names that srun has for them. For ssh it is
    one task on another node.
    """

    options: Mapping[str, Option]
    command: Command
    words: tuple[str, ...]
    limited: str = ""
    lost: tuple[str, ...] = ()
    program: str = "srun"


@dataclass(frozen=True)
class Invocation:
    """One command as it would be run, with its `words` expanded. `values` are the variables at
    that point, `exported` those that children get, `own` those set for it alone; `folder` is the
    working folder where it is known. `step` is the srun in whose tasks it runs, `file` the shell
    script that holds it, "" for the batch script itself; `line` is then that of the call.
    """

    command: Command
    words: tuple[str, ...]
    values: Mapping[str, str]
    exported: frozenset[str]
    own: frozenset[str] = frozenset()
    folder: str | None = None
    step: Step | None = None
    file: str = ""

    @property
    def line(self) -> int:
        return self.command.line

    def environment(self) -> dict[str, str]:
        """The variables that it starts with, as far as they are known; those of a task for a
        command in a step.
        """
        names = (*self.exported, *self.own)
        return {name: self.values[name] for name in names if name in self.values}


@dataclass(frozen=True)
class Assignment:
    """A variable that the script sets. `raw` is as written, `value` expanded as far as it is
    known; `task` where each task sets its own.
    """

    name: str
    raw: str
    value: str
    line: int
    task: bool = False


@dataclass(frozen=True)
class Script:
    """`options` are those of the first component, `components` all of them; `commands` in the
    order of the script.
    """

    text: str
    components: tuple[Mapping[str, Option], ...]
    repeated: tuple[tuple[Option, Option], ...]
    flaws: tuple[Flaw, ...]
    first_command: int
    commands: tuple[Invocation, ...]
    assigned: tuple[Assignment, ...]
    scheduler: Scheduler = SLURM
    called: tuple[tuple[str, str | None], ...] = ()

    @property
    def options(self) -> Mapping[str, Option]:
        return self.components[0]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """The text of a line, empty where there is none of this number."""
        lines = self.lines
        return lines[number - 1] if 0 < number <= len(lines) else ""


def read_script(
    text: str,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    home: str = "",
    cwd: str = "",
    files: Mapping[str, str] | None = None,
) -> Script:
    """Read a batch script; `arguments` are options of sbatch on its command line, `environ` the
    environment in which it is submitted, `files` the texts of shell scripts that it calls, by the
    names by which it calls them.

    It never raises, whatever the text holds. At most MOST_TEXT characters are read; a flaw names
    what is left out.
    """
    environ = environ or {}
    flaws: list[Flaw] = []
    if len(text) > MOST_TEXT:
        says = f"The script has {len(text):,} characters; only the first {MOST_TEXT:,} were read"
        flaws.append(Flaw("long", 1, says))
    text = text[:MOST_TEXT].replace("\0", "\ufffd")
    scheduler = scheduler_of(text)
    own = scheduler.read(text)
    typed = options_of(arguments, where="the command line")
    flaws += [Flaw("unknown", 0, f"On the command line {flaw}") for flaw in typed.flaws]
    flaws += own.flaws
    if len(flaws) > MOST_FLAWS:
        says = f"{len(flaws) - MOST_FLAWS} more lines like these are not shown"
        flaws[MOST_FLAWS:] = [Flaw("more", flaws[MOST_FLAWS].line, says)]
    outside = [
        *(
            Option(option, environ[name], -1, f"{name} in the environment")
            for name, option in FROM_ENVIRONMENT.items()
            if name in environ and scheduler is SLURM
        ),
        *typed.options,
    ]
    repeated: list[tuple[Option, Option]] = []
    components = [
        _by_name((*part, *(outside if number == 0 else ())), repeated)
        for number, part in enumerate(own.components)
    ]
    chdir = components[0]["chdir"].value if "chdir" in components[0] else ""
    if scheduler is PBS and "export" not in components[0]:
        environ = {}  # qsub(1B): only -V passes it on
    elif "export" in components[0]:
        environ = passed_on(components[0]["export"].value, environ)
    flow = _Flow(dict(environ), home, cwd or chdir, scheduler, files or {})
    flow.start(components[0], environ)
    if own.first_command:
        body = "\n".join(text.split("\n")[own.first_command - 1 :])
        flow.read(body, own.first_command, DEEPEST)
    return Script(
        text,
        tuple(components),
        tuple(repeated[:MOST_FLAWS]),
        tuple(flaws),
        own.first_command,
        tuple(flow.invocations),
        tuple(flow.assigned),
        scheduler,
        tuple(flow.called.items())[:MOST_FILES],
    )


def _by_name(options: Sequence[Option], repeated: list[tuple[Option, Option]]) -> dict[str, Option]:
    """The last option of each name; pairs of lines that contradict each other go to `repeated`."""
    found: dict[str, Option] = {}
    for option in options:
        before = found.get(option.name)
        if before and before.line > 0 and option.line > 0 and before.value != option.value:
            repeated.append((before, option))
        found[option.name] = option
    return found


@dataclass
class _Flow:
    """Follows the commands and tracks the variables that are known."""

    values: dict[str, str]
    home: str
    folder: str | None
    scheduler: Scheduler = SLURM
    files: Mapping[str, str] = field(default_factory=dict)
    called: dict[str, str | None] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    invocations: list[Invocation] = field(default_factory=list)
    assigned: list[Assignment] = field(default_factory=list)
    limited: str = ""

    def start(self, options: Mapping[str, Option], environ: Mapping[str, str]) -> None:
        """Set what SLURM sets for the batch shell, as far as the options determine it."""
        self.exported = set(environ)
        for name in (*_OF_JOB, *(key for key in self.values if key.startswith("SLURM_"))):
            self.values.pop(name, None)
        shaped = shape(options)
        self.counts = {"nodes": shaped.nodes, "slots": shaped.all_tasks}
        for name, option in _BY_OPTION.items():
            if option in options and self.scheduler is SLURM:
                self.values[name] = options[option].value
        if self.scheduler is SLURM:
            self.values.update(variables(shaped))
        exports = options.get("export")
        if self.scheduler is SLURM and exports is not None and not _passes_all(exports.value):
            # sbatch(1), --export: steps inherit it
            self.values["SLURM_EXPORT_ENV"] = exports.value
            self.limited = f"--export={exports.value[:60]} ({exports.where})"
        if self.home:
            self.values["HOME"] = self.home
        if self.folder:
            self.values["SLURM_SUBMIT_DIR"] = self.values["PWD"] = self.folder
        self.values.update({name: frozen(name) for name in OWN_OF_TASK})
        self.values.pop("HOSTNAME", None)

    def read(self, text: str, line: int, depth: int, step: Step | None = None) -> None:
        for command in commands(text, line):
            self._command(command, depth, step)

    def _read_file(self, name: str, run: Invocation, depth: int, step: Step | None) -> None:
        """Follow the commands of a shell script that is called, at the line of its call."""
        at = run.command
        for command in commands(self.files[name][:MOST_TEXT]):
            inner = replace(command, line=at.line, last=at.last, loop=command.loop or at.loop)
            self._command(inner, depth - 1, step, name)

    def _command(self, command: Command, depth: int, step: Step | None, file: str = "") -> None:
        words = list(command.words)
        own: dict[str, str] = {}
        while words and (match := ASSIGNED.fullmatch(words[0])):
            name, appends, raw = match.groups()
            if raw.startswith("(") and raw.endswith(")"):
                self._set_array(name, raw, appends=bool(appends))
                own[name] = self.values.get(name, "")
                words.pop(0)
                continue
            value = settled(expanded(raw, self.values), self.counts)
            own[name] = (self.values.get(name, "") if appends else "") + value
            self.assigned.append(Assignment(name, raw, own[name], command.line, step is not None))
            words.pop(0)
        words = [word for word in words if not re.match(r"(?:\d*|&)(?:>|<)", word)]
        if not words:
            self.values.update(own)
            return
        full = tuple(text for word in words for text in expand(word, self.values))
        if not full:
            return
        if full[0] in ("export", "declare", "readonly", "local", "typeset", "unset"):
            self._declare(words, command, step)
            return
        values = {**self.values, **own}
        exported = frozenset(self.exported)
        run = Invocation(command, full, values, exported, frozenset(own), self.folder, step, file)
        self.invocations.append(run)
        if full[0] in ("source", ".") and len(full) > 1 and _SCRIPT_NAME.fullmatch(full[1]):
            self.called.setdefault(full[1], self.folder)
            if full[1] in self.files and depth > 0 and len(self.invocations) < MOST_INVOCATIONS:
                self._read_file(full[1], run, depth, step)
            return
        if full[0] == "cd":
            self._change_folder(full)
        self._read_inside(run, depth)

    def _set_array(self, name: str, raw: str, *, appends: bool) -> None:
        """Keep the elements of `NAME=(…)` as they expand; the plain name is the first of them."""
        inside = [word for command in commands(raw[1:-1]) for word in command.words]
        elements = [text for word in inside for text in expand(word, self.values)]
        key = elements_of(name)
        kept = self.values.get(key, "") if appends else ""
        kept += "".join(f"{element}{ELEMENT_END}" for element in elements)
        self.values[key] = kept[:MOST_TEXT]
        self.values[name] = self.values[key].partition(ELEMENT_END)[0]

    def _declare(self, words: list[str], command: Command, step: Step | None) -> None:
        kind = words[0]
        switches = "".join(word for word in words[1:] if word.startswith("-"))
        exports = kind == "export" or (kind in ("declare", "typeset") and "x" in switches)
        for word in words[1:]:
            if word.startswith("-"):
                continue
            match = ASSIGNED.fullmatch(word)
            name = match[1] if match else expanded(word, self.values)
            if kind == "unset":
                self.values.pop(name, None)
                self.exported.discard(name)
                self.assigned = [known for known in self.assigned if known.name != name]
            elif match and match[3].startswith("(") and match[3].endswith(")"):
                self._set_array(name, match[3], appends=bool(match[2]))
            elif match:
                value = settled(expanded(match[3], self.values), self.counts)
                self.values[name] = value
                assignment = Assignment(name, match[3], value, command.line, step is not None)
                self.assigned.append(assignment)
            if exports:
                self.exported.add(name)

    def _change_folder(self, words: Sequence[str]) -> None:
        to = words[1] if len(words) > 1 else self.home
        if "$" in to or not to:
            self.folder = None
        elif to.startswith("/"):
            self.folder = to
        else:
            self.folder = f"{self.folder}/{to}" if self.folder else None

    def _read_inside(self, run: Invocation, depth: int) -> None:
        """Read on inside `srun …`, `bash -c '…'` and behind prefixes such as `time`."""
        if depth <= 0 or len(self.invocations) > MOST_INVOCATIONS:
            return
        words, step = unwrapped(run.words), run.step
        if words and words[0].rpartition("/")[2] == "srun":
            where = f"srun in line {run.line}"
            parsed = options_of(words[1:], step=True, line=run.line, where=where)
            options = {option.name: option for option in parsed.options}
            run, limited, lost = self._in_tasks(run, options)
            step = Step(options, run.command, parsed.rest, limited, lost)
            words = unwrapped(parsed.rest)
        elif words and words[0].rpartition("/")[2] in PROGRAMS and step is None:
            options, rest = step_options(words, run.line)
            step = Step(options, run.command, rest, program=words[0].rpartition("/")[2])
            words = unwrapped(rest)
        elif words and words[0].rpartition("/")[2] == "ssh" and step is None:
            self._read_remote(words, run, depth)
            return
        shell = words and _SHELLS.fullmatch(words[0]) and len(words) > 1
        if shell or (words and _SCRIPT_NAME.fullmatch(words[0])):
            self._read_shell(words, run, depth, step)
        elif words and (words != run.words or step is not run.step):
            self.invocations.append(replace(run, words=words, step=step))

    def _read_remote(self, words: Sequence[str], run: Invocation, depth: int) -> None:
        """Read on in `ssh HOST …`, whose shell begins in the home folder with no variable of the
        script: ssh(1).
        """
        rest = remote_words(words)
        if not rest:
            return
        where = f"ssh in line {run.line}"
        options = {name: Option(name, "1", run.line, where) for name in ("nodes", "ntasks")}
        step = Step(options, run.command, rest, program="ssh")
        there = replace(run, values={}, exported=frozenset(), own=frozenset())
        here, self.folder = self.folder, self.home or None
        self._read_shell(("bash", "-c", " ".join(rest)), there, depth, step)
        self.folder = here

    def _in_tasks(
        self, run: Invocation, options: Mapping[str, Option]
    ) -> tuple[Invocation, str, tuple[str, ...]]:
        """The command with the variables that tasks get; what limits them, and which exported ones
        are lost: srun(1), --export and SLURM_EXPORT_ENV.
        """
        option = options.get("export")
        exports = option.value if option else run.values.get("SLURM_EXPORT_ENV", "ALL")
        environ = run.environment()
        kept = passed_on(exports, environ)
        limited = ""
        if not _passes_all(exports):
            limited = f"--export={exports[:60]} of srun" if option else self.limited
        values = {name: value for name, value in run.values.items() if name not in environ}
        inside = replace(run, values={**values, **kept}, exported=frozenset(kept), own=frozenset())
        lost = sorted(name for name in environ if name not in kept)
        return inside, limited, tuple(lost)

    def _read_shell(
        self, words: Sequence[str], run: Invocation, depth: int, step: Step | None
    ) -> None:
        text = _inline_text(words)
        name = _called(words) if text is None else ""
        if name:
            self.called.setdefault(name, run.folder)
        if text is None and name not in self.files:
            if tuple(words) != run.words or step is not run.step:
                self.invocations.append(replace(run, words=tuple(words), step=step))
            return
        outer = (dict(self.values), set(self.exported), self.folder)
        self.exported = set(run.exported | run.own)
        self.values = {
            name: value
            for name, value in run.values.items()
            if (name in run.exported or name in run.own or name.startswith("SLURM_"))
            and not (step is not None and name in OWN_OF_TASK)
        }
        if text is not None:
            self.read(text, run.line, depth - 1, step)
        else:
            arguments = words[words.index(name) + 1 :]
            self.values |= {str(place): word for place, word in enumerate(arguments, start=1)}
            self.values["@"] = self.values["*"] = " ".join(arguments)
            self._read_file(name, run, depth, step)
        self.values, self.exported, self.folder = outer


def _called(words: Sequence[str]) -> str:
    """The shell script that a command calls, "" where it has no name of one."""
    if _SCRIPT_NAME.fullmatch(words[0]):
        return words[0]
    named = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
    return named if _SCRIPT_NAME.fullmatch(named) else ""


def passed_on(exports: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a value of --export lets through: all, SLURM's own, or the named ones."""
    passed = {
        name: value
        for name, value in environ.items()
        if _passes_all(exports) or name.startswith("SLURM_")
    }
    for entry in exports.split(","):
        name, has_value, value = entry.partition("=")
        if has_value or name in environ:
            passed[name] = value if has_value else environ[name]
    return passed


def _passes_all(exports: str) -> bool:
    return not exports or "ALL" in exports.upper().split(",")


_PREFIXES = set(
    """
    exec time nohup command nice ionice stdbuf setsid env timeout numactl taskset sudo eval
    """.split()
)
_PREFIX_ARGUMENTS = {"timeout": 1, "taskset": 1}
_PREFIX_VALUED = ("-s", "--signal", "-k", "-n", "-u", "-c", "-o", "-i", "-e")
_NO_WRAPPERS = set(
    """
    echo printf which type test [ [[ cat ls cp mv rm grep sed awk pip pip3 conda mamba module ml
    export pkill killall scancel command hash alias ssh pdsh clush parallel git apt apt-get sudo
    sbatch srun salloc kill tee source . cd mkdir find xargs virtualenv uv-pip
    """.split()
)
_CONTAINERS = {
    "singularity": ("exec", "run"),
    "apptainer": ("exec", "run"),
    "podman": ("run",),
    "podman-hpc": ("run",),
    "docker": ("run",),
    "shifter": (),
    "enroot": ("start",),
}
# apptainer-exec(1), enroot(1)
_CONTAINER_SWITCHES = set(
    """
    --nv --rocm --cleanenv -e --contain -c --containall -C --writable-tmpfs --rm -it --no-home --rw
    """.split()
)
# docker-run(1), podman-run(1): there -e and -c take a value
_DOCKER_SWITCHES = set(
    """
    --rm -it -ti -i -t -d --interactive --tty --detach --init --privileged --read-only --replace
    --env-host --no-healthcheck --rmi
    """.split()
)


_FOUND_IN_PATH = re.compile(r"\$\((?:which|command -v|type -p)\s+([\w.+-]+)\)")


def unwrapped(words: Sequence[str]) -> tuple[str, ...]:
    """Take prefixes off a command: `exec`, `time`, `timeout 60`, `env A=b`, `numactl …`,
    `singularity exec … image`.
    """
    rest = list(words)
    if rest and (found := _FOUND_IN_PATH.fullmatch(rest[0])):
        rest[0] = found[1]
    for _ in range(8):
        if not rest or LAUNCHERS.fullmatch(rest[0]):
            break
        name = rest[0].rpartition("/")[2]
        if name in _CONTAINERS:
            contained = in_container(rest)
            if contained is None:
                break
            rest = contained
        elif name in _PREFIXES:
            rest = rest[1:]
            arguments = _PREFIX_ARGUMENTS.get(name, 0)
            while rest and (
                rest[0].startswith("-") or ASSIGNED.fullmatch(rest[0]) or arguments > 0
            ):
                arguments -= not rest[0].startswith("-")
                rest = rest[2:] if rest[0] in _PREFIX_VALUED and name != "setsid" else rest[1:]
        else:
            rest = _behind_wrapper(rest)
            break
    return tuple(rest)


def _behind_wrapper(words: list[str]) -> list[str]:
    """What an unknown program starts, such as `nsys profile … torchrun …`: a launcher among its
    words, or a Python with a program; the words themselves where there is none.
    """
    name = words[0].rpartition("/")[2]
    if name in _NO_WRAPPERS or name in PROGRAMS or not re.fullmatch(r"[\w./+-]+", words[0]):
        return words
    for place, word in enumerate(words[1:40], start=1):
        rest = words[place:]
        if LAUNCHERS.fullmatch(word) and len(rest) > 1 and not words[place - 1].startswith("--"):
            return rest
    return words


def in_container(words: list[str]) -> list[str] | None:
    """What runs in a container: the words behind the image, which is the first word that is
    neither an option nor an option's value.
    """
    verbs = _CONTAINERS[words[0].rpartition("/")[2]]
    verb = next((word for word in words[1:6] if word in verbs), "")
    if verbs and not verb:
        return None
    at = words.index(verb) + 1 if verb else 1
    of_docker = words[0].rpartition("/")[2].startswith(("docker", "podman"))
    switches = _DOCKER_SWITCHES if of_docker else _CONTAINER_SWITCHES
    while at < len(words) and words[at].startswith("-"):
        at += 1 if "=" in words[at] or words[at] in switches else 2
    if not verb:
        return words[at:] or None  # shifter takes its image from an option
    return words[at + 1 :] if at + 1 < len(words) else None


def _inline_text(words: Sequence[str]) -> str | None:
    """The text that `bash -c '…'` runs, None for another call of a shell."""
    for place, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return words[place + 1] if place + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None
