"""A batch script as a whole: its options in the order in which they count, and each command with
the variables that it would have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainprobe.sbatch.directives import Flaw, directives
from trainprobe.sbatch.expanding import OWN_OF_TASK, expand, expanded, frozen
from trainprobe.sbatch.layout import shape, variables
from trainprobe.sbatch.options import OF_ENVIRONMENT, Option, options_of
from trainprobe.sbatch.shell import ASSIGNED, Command, commands

MOST_TEXT = 300_000
MOST_FLAWS = 50
DEEPEST = 4
_OF_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")


@dataclass(frozen=True)
class Done:
    """One command as it would be run. `values` are the variables at that point, `exported` those
    that children get.

    `task` is true for what runs in the tasks of a step, `step` is the srun that starts it there.
    """

    line: int
    last: int
    words: tuple[str, ...]
    raw: tuple[str, ...]
    values: Mapping[str, str]
    exported: frozenset[str]
    own: frozenset[str] = frozenset()
    after: str = "\n"
    loop: bool = False
    nested: bool = False
    guarded: bool = False
    folder: str | None = None
    task: bool = False
    step: Step | None = None

    def environment(self) -> dict[str, str]:
        return {
            name: self.values[name] for name in (*self.exported, *self.own) if name in self.values
        }


@dataclass(frozen=True)
class Step:
    """An srun: its options, its line, and the words that it starts."""

    options: Mapping[str, Option]
    line: int
    last: int
    words: tuple[str, ...]
    flaws: tuple[str, ...] = ()
    after: str = "\n"


@dataclass(frozen=True)
class Assigned:
    """A variable that the script sets. `raw` is as written, `value` with what is known; `task`
    where each task sets its own.
    """

    name: str
    raw: str
    value: str
    line: int
    exported: bool
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
    commands: tuple[Done, ...]
    assigned: tuple[Assigned, ...]
    arguments: tuple[str, ...] = ()

    @property
    def options(self) -> Mapping[str, Option]:
        return self.components[0]

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def given(self, name: str) -> str | None:
        option = self.options.get(name)
        return option.value if option else None


def read_script(
    text: str,
    given: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    home: str = "",
    cwd: str = "",
) -> Script:
    """Read a batch script; `given` are options of sbatch on its command line, `environ` the
    environment in which it is submitted.

    It never raises, whatever the text holds. More than MOST_TEXT characters are not read, and a
    flaw says so.
    """
    environ = environ or {}
    flaws: list[Flaw] = []
    if len(text) > MOST_TEXT:
        flaws.append(
            Flaw(
                "long",
                1,
                f"The script has {len(text):,} characters, of which the first {MOST_TEXT:,} were"
                " read",
            )
        )
        text = text[:MOST_TEXT]
    text = text.replace("\0", "\ufffd")
    told = directives(text)
    typed = options_of(given, where="the command line")
    flaws += [Flaw("unknown", 0, f"On the command line {flaw}") for flaw in typed.flaws]
    above = [
        Option(name, environ[key], -1, f"{key} in the environment")
        for key, name in OF_ENVIRONMENT.items()
        if key in environ
    ]
    components: list[dict[str, Option]] = []
    repeated: list[tuple[Option, Option]] = []
    for place, part in enumerate(told.components):
        found: dict[str, Option] = {}
        for option in (
            *part,
            *(above if place == 0 else ()),
            *(typed.options if place == 0 else ()),
        ):
            before = found.get(option.name)
            if (
                before is not None
                and before.line > 0
                and option.line > 0
                and before.value != option.value
                and len(repeated) < MOST_FLAWS
            ):
                repeated.append((before, option))
            found[option.name] = option
        components.append(found)
    flow = _Flow(dict(environ), home, cwd or _chdir(components[0]))
    flow.start(components[0], environ)
    flaws += told.flaws
    if len(flaws) > MOST_FLAWS:
        flaws[MOST_FLAWS:] = [
            Flaw(
                "more",
                flaws[MOST_FLAWS].line,
                f"{len(flaws) - MOST_FLAWS} more lines like these are not shown",
            )
        ]
    body = (
        "\n".join(text.split("\n")[max(0, told.first_command - 1) :]) if told.first_command else ""
    )
    flow.read(body, max(1, told.first_command), DEEPEST)
    return Script(
        text,
        tuple(components),
        tuple(repeated),
        tuple(flaws),
        told.first_command,
        tuple(flow.done),
        tuple(flow.assigned),
        tuple(typed.rest),
    )


def _chdir(options: Mapping[str, Option]) -> str:
    return options["chdir"].value if "chdir" in options else ""


@dataclass
class _Flow:
    """Goes through the commands and keeps what is known of the variables."""

    values: dict[str, str]
    home: str
    folder: str | None
    exported: set[str] = field(default_factory=set)
    done: list[Done] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)

    def start(self, options: Mapping[str, Option], environ: Mapping[str, str]) -> None:
        """What SLURM sets for the batch shell, as far as the options say it."""
        self.exported = set(environ)
        for name in (*_OF_JOB, *(key for key in self.values if key.startswith("SLURM_"))):
            self.values.pop(name, None)
        for name, option in (
            ("SLURM_CPUS_PER_TASK", "cpus-per-task"),
            ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
            ("SLURM_GPUS_PER_NODE", "gpus-per-node"),
            ("SLURM_GPUS", "gpus"),
            ("SLURM_GPUS_PER_TASK", "gpus-per-task"),
            ("SLURM_JOB_NAME", "job-name"),
            ("SLURM_JOB_PARTITION", "partition"),
        ):
            if option in options:
                self.values[name] = options[option].value
        self.values.update(variables(shape(options)))
        if self.home:
            self.values["HOME"] = self.home
        if self.folder:
            self.values["SLURM_SUBMIT_DIR"] = self.values["PWD"] = self.folder
        self.values.update({name: frozen(name) for name in OWN_OF_TASK})
        self.values.pop("HOSTNAME", None)

    def read(self, text: str, line: int, depth: int, step: Step | None = None) -> None:
        for command in commands(text, line):
            self._one(command, depth, step)

    def _one(self, command: Command, depth: int, step: Step | None) -> None:
        words = list(command.words)
        own: dict[str, str] = {}
        while words and (found := ASSIGNED.fullmatch(words[0])):
            value = expanded(found[3], self.values)
            own[found[1]] = (self.values.get(found[1], "") if found[2] else "") + value
            self.assigned.append(
                Assigned(
                    found[1],
                    found[3],
                    own[found[1]],
                    command.line,
                    found[1] in self.exported or len(words) > 1,
                    step is not None,
                )
            )
            words.pop(0)
        words = [word for word in words if not re.match(r"(?:\d*|&)(?:>|<)", word)]
        if not words:
            self.values.update(own)
            return
        full = tuple(one for word in words for one in expand(word, self.values))
        if not full:
            return
        if full[0] in ("export", "declare", "readonly", "local", "typeset", "unset"):
            self._declared(words, command, step)
            return
        values = {**self.values, **own}
        here = Done(
            command.line,
            command.last,
            full,
            command.words,
            values,
            frozenset(self.exported),
            frozenset(own),
            command.after,
            command.loop,
            command.nested,
            command.guarded,
            self.folder,
            step is not None,
            step,
        )
        self.done.append(here)
        if full[0] == "cd":
            self._moved(full)
        self._inside(here, depth)

    def _declared(self, words: list[str], command: Command, step: Step | None) -> None:
        kind = words[0]
        exports = kind == "export" or (
            kind in ("declare", "typeset")
            and any("x" in word for word in words[1:] if word.startswith("-"))
        )
        for word in words[1:]:
            if word.startswith("-"):
                continue
            found = ASSIGNED.fullmatch(word)
            if kind == "unset":
                name = expanded(word, self.values)
                self.values.pop(name, None)
                self.exported.discard(name)
                self.assigned = [one for one in self.assigned if one.name != name]
            elif found:
                self.values[found[1]] = expanded(found[3], self.values)
                self.assigned.append(
                    Assigned(
                        found[1],
                        found[3],
                        self.values[found[1]],
                        command.line,
                        exports or found[1] in self.exported,
                        step is not None,
                    )
                )
            if exports:
                self.exported.add(found[1] if found else expanded(word, self.values))

    def _moved(self, words: Sequence[str]) -> None:
        to = words[1] if len(words) > 1 else self.home
        if "$" in to or not to:
            self.folder = None
        elif to.startswith("/"):
            self.folder = to
        else:
            self.folder = f"{self.folder}/{to}" if self.folder else None

    def _inside(self, here: Done, depth: int) -> None:
        """Read on inside `srun …`, `bash -c '…'` and what stands before another command."""
        if depth <= 0 or len(self.done) > 4000:
            return
        words, step = here.words, here.step
        stripped = wrapped(words)
        if stripped and stripped[0].rpartition("/")[2] == "srun":
            given = options_of(
                stripped[1:], step=True, line=here.line, where=f"srun in line {here.line}"
            )
            step = Step(
                {one.name: one for one in given.options},
                here.line,
                here.last,
                given.rest,
                given.flaws,
                here.after,
            )
            inner = wrapped(given.rest)
            if _is_shell(inner):
                self._task_text(inner, here, depth, step)
            elif inner:
                self.done.append(replace(here, words=inner, task=True, step=step))
        elif _is_shell(stripped):
            self._task_text(stripped, here, depth, step)
        elif stripped != words and stripped:
            self.done.append(replace(here, words=stripped))

    def _task_text(self, words: Sequence[str], here: Done, depth: int, step: Step | None) -> None:
        text = _given_text(words)
        if text is None:
            self.done.append(replace(here, words=tuple(words), task=step is not None, step=step))
            return
        outer = (dict(self.values), set(self.exported), self.folder)
        self.values = {
            name: value
            for name, value in here.values.items()
            if name in self.exported or name in here.own or name.startswith("SLURM_")
        }
        if step is not None:
            self.values = {
                name: value for name, value in self.values.items() if name not in OWN_OF_TASK
            }
        self.read(text, here.line, depth - 1, step)
        self.values, self.exported, self.folder = outer


_BEFORE = {
    "exec",
    "time",
    "nohup",
    "command",
    "nice",
    "ionice",
    "stdbuf",
    "setsid",
    "env",
    "timeout",
    "numactl",
    "taskset",
    "sudo",
    "eval",
}
_VALUED_BEFORE = {"timeout": 1, "taskset": 1}
_CONTAINERS = {
    "singularity": "exec",
    "apptainer": "exec",
    "podman": "run",
    "docker": "run",
    "shifter": "",
    "enroot": "start",
}
_CONTAINER_SWITCHES = {
    "--nv",
    "--rocm",
    "--cleanenv",
    "-e",
    "--contain",
    "-c",
    "--containall",
    "-C",
    "--writable-tmpfs",
    "--rm",
    "-it",
    "--no-home",
    "--rw",
}


def wrapped(words: Sequence[str]) -> tuple[str, ...]:
    """Take off what only stands before a command: `exec`, `time`, `timeout 60`, `env A=b`,
    `numactl …`, `singularity exec … image`.
    """
    rest = list(words)
    for _ in range(8):
        if not rest:
            break
        name = rest[0].rpartition("/")[2]
        if name in _CONTAINERS:
            image = _behind_image(rest)
            if image is None:
                break
            rest = image
        elif name in _BEFORE:
            rest = rest[1:]
            skip = _VALUED_BEFORE.get(name, 0)
            while rest and (rest[0].startswith("-") or ASSIGNED.fullmatch(rest[0]) or skip > 0):
                skip -= not rest[0].startswith("-")
                valued = (
                    rest[0] in ("-s", "--signal", "-k", "-n", "-u", "-c", "-o", "-i", "-e")
                    and name != "setsid"
                    and "=" not in rest[0]
                )
                rest = rest[2:] if valued else rest[1:]
        else:
            break
    return tuple(rest)


def _behind_image(words: list[str]) -> list[str] | None:
    """What runs in a container: behind the image, which is the first word that is no option and
    no option's value.
    """
    verb = _CONTAINERS[words[0].rpartition("/")[2]]
    at = words.index(verb) + 1 if verb and verb in words[:6] else 1
    while at < len(words) and words[at].startswith("-"):
        at += 1 if "=" in words[at] or words[at] in _CONTAINER_SWITCHES else 2
    return words[at + 1 :] if at + 1 < len(words) else None


def _is_shell(words: Sequence[str]) -> bool:
    return bool(words) and bool(_SHELLS.fullmatch(words[0])) and len(words) > 1


def _given_text(words: Sequence[str]) -> str | None:
    for place, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return words[place + 1] if place + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None
