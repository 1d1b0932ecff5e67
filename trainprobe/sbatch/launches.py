"""What in a script starts the training: torchrun, accelerate, deepspeed, or plain Python in the
tasks of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.layout import Shape, shape
from trainprobe.sbatch.options import Option
from trainprobe.sbatch.script import Invocation, Script, Step

MOST_COMPONENTS = 128  # MAX_HET_JOB_COMPS of SLURM
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_NO_TRAINING_MODULES = "pip venv json http zipfile site ensurepip pytest conda".split()
_NODES_OPTION = {"torchrun": "nnodes", "accelerate": "num-machines", "deepspeed": "num-nodes"}
# Switches of the launchers that take no value (torch/distributed/run.py,
# accelerate/commands/launch.py, deepspeed/launcher/runner.py).
_SWITCHES = set(
    """
    standalone no-python run-path module m multi-gpu use-deepspeed use-fsdp quiet debug
    no-local-rank force-multi mixed-precision-off save-pid no-ssh-check bind-cores-to-rank cpu mps
    use-env use_env use-megatron-lm same-network no-ssh
    """.split()
)
_SHORT = {"r": "redirects", "t": "tee", "i": "include", "e": "exclude", "H": "hostfile"}
_NO_TRAINING = re.compile(
    r"(?:.*/)?(?:setup|install|download|prepare|preprocess|tokeni[sz]e|convert|check|collect_env"
    r"|env)[a-z0-9_]*\.py"
)


@dataclass(frozen=True)
class Launch:
    """One start of a training. `program` is torchrun, accelerate, deepspeed, or python.

    `options` are the launcher's own, without leading dashes and with `-` between words; `script` is
    what it runs, "" for a module or where it is not known. `shape` is that of the step; without a
    step, that of the batch shell alone.
    """

    program: str
    options: Mapping[str, str]
    script: str
    arguments: tuple[str, ...]
    run: Invocation
    shape: Shape
    job_options: Mapping[str, Option]

    @property
    def line(self) -> int:
        return self.run.line

    @property
    def place(self) -> str:
        """The launch for a sentence: `torchrun in line 12`."""
        inside = f" ({self.run.file})" if self.run.file else ""
        return f"{self.program} in line {self.line}{inside}"

    @property
    def step(self) -> Step | None:
        return self.run.step

    @property
    def step_program(self) -> str:
        """What starts its tasks, such as srun; "shell" without a step."""
        return self.step.program if self.step is not None else "shell"

    @property
    def open(self) -> str:
        """The variable or command that may hold more options of the launcher, "" where all are
        known.
        """
        if self.program == "python" or not self.script.startswith("$") or not self.arguments:
            return ""
        names_program = re.search(
            r"script|file|main|prog|entry|train|\.py", self.script, re.IGNORECASE
        )
        return "" if names_program else self.script[:60]

    @property
    def counted(self) -> bool:
        """Whether the number of its tasks is known, and not taken from an unknown variable."""
        own = self.step.options if self.step is not None else {}
        names = ("ntasks", "ntasks-per-node", "nodes")
        return all(numbers.node_range(own[name].value) for name in names if name in own)

    @property
    def in_loop(self) -> bool:
        """Whether a loop of the script starts it, or the step in which it runs."""
        return self.run.command.loop or (self.step is not None and self.step.command.loop)

    @property
    def groups(self) -> frozenset[int]:
        """The components of a heterogeneous job in which it runs: srun(1), --het-group."""
        found: set[int] = set()
        for part in self.option("het-group").split(","):
            low, _, high = part.partition("-")
            first, last = numbers.whole(low), numbers.whole(high or low)
            if first is not None and last is not None:
                found.update(range(first, min(last, first + MOST_COMPONENTS) + 1))
        return frozenset(found or {0})

    @property
    def several_tasks(self) -> bool:
        """Whether it is started in more than one task."""
        return self.step is not None and self.shape.all_tasks > 1

    @property
    def gpus_of_task(self) -> int | None:
        """The GPUs that SLURM shows to each task alone, None where a task sees all of the node:
        srun(1), --gpus-per-task, --ntasks-per-gpu and --gpu-bind.
        """
        if self.step is None or not self.shape.gpus:
            return None
        bind = self.option("gpu-bind").removeprefix("verbose,")
        kind, _, count = bind.partition(":")
        if kind in ("single", "per_task", "map_gpu", "mask_gpu"):
            return (numbers.whole(count) or 1) if kind == "per_task" else 1
        if kind == "none" or (kind and kind != "closest"):
            return None
        if self.option("gpus-per-task"):
            return numbers.gpu_count(self.option("gpus-per-task"))
        return 1 if self.option("ntasks-per-gpu") else None

    def option(self, name: str) -> str:
        """The value of an option of the step, else of the job, "" where neither sets it."""
        own = self.step.options if self.step is not None else {}
        found = own.get(name) or self.job_options.get(name)
        return found.value if found else ""

    @property
    def per_node(self) -> int | None:
        """The ranks that one launcher starts, None where it is not known; 1 for plain Python."""
        if self.program == "python":
            return 1
        if self.program == "accelerate":
            every = numbers.whole(self.options.get("num-processes", ""))
            machines = numbers.whole(self.options.get("num-machines", "1")) or 1
            return every // machines if every is not None else None
        option = "nproc-per-node" if self.program == "torchrun" else "num-gpus"
        count = self.options.get(option, "")
        if count in ("gpu", "auto") or (not count and self.program == "deepspeed"):
            return self.shape.gpus
        return numbers.whole(count) if count else 1

    @property
    def machines(self) -> tuple[int, int] | None:
        """The least and the most nodes that the launcher's options name, None where they are not
        known here.
        """
        count = self.options.get(_NODES_OPTION.get(self.program, ""), "")
        if not count:
            return (1, 1) if self.program in ("torchrun", "accelerate") else None
        least, _, most = count.partition(":")
        low, high = numbers.whole(least), numbers.whole(most or least)
        return (low, high) if low is not None and high is not None else None

    @property
    def named_values(self) -> Iterator[tuple[str, str]]:
        """Arguments with their names: ("--data", "/x") for both `--data=/x` and `--data /x`."""
        for previous, argument in zip(("", *self.arguments), self.arguments, strict=False):
            name, has_value, value = argument.partition("=")
            yield (name, value) if has_value else (previous, argument)

    def value(self, *names: str) -> str | None:
        return next((self.options[name] for name in names if name in self.options), None)


def launches(script: Script) -> tuple[Launch, ...]:
    """Return what starts a training, launchers and steps first: other Python programs count only
    where there is nothing else.
    """
    job = shape(script.options)
    candidates = (_launch(run, script, job) for run in script.commands)
    found = [launch for launch in candidates if launch is not None]
    distributed = [
        launch
        for launch in found
        if launch.program != "python" or launch.step_program not in ("shell", "ssh")
    ]
    chosen = distributed or found[-1:]
    training = [
        launch
        for launch in chosen
        if not (launch.program == "python" and _NO_TRAINING.fullmatch(launch.script))
    ]
    if len(script.components) > 1:  # of a heterogeneous job, the parts without GPUs serve the rest
        training = [launch for launch in training if launch.shape.gpus] or training
    return tuple(training or chosen)


def _launch(run: Invocation, script: Script, job: Shape) -> Launch | None:
    words = run.words
    program = words[0].rpartition("/")[2]
    rest: Sequence[str] = words[1:]
    if program == "accelerate":
        if tuple(rest[:1]) != ("launch",):
            return None
        rest = rest[1:]
    elif _PYTHON.fullmatch(words[0]):
        module, rest = _module(rest)
        if module not in _MODULES:
            return _plain(run, script, job, module, rest) if module or rest else None
        program = _MODULES[module]
    if program not in _LAUNCHERS:
        return None
    options, rest = _options(rest)
    target = "" if "m" in options or "module" in options or not rest else rest[0]
    shaped = _shape(run, script, job)
    return Launch(program, options, target, tuple(rest[1:]), run, shaped, script.options)


def _plain(
    run: Invocation, script: Script, job: Shape, module: str, rest: Sequence[str]
) -> Launch | None:
    if module:
        if module.partition(".")[0] in _NO_TRAINING_MODULES:
            return None
        target, arguments = "", rest
    elif rest[0].endswith(".py") or rest[0].startswith("$"):
        target, arguments = rest[0], rest[1:]
    else:
        return None
    shaped = _shape(run, script, job)
    return Launch("python", {}, target, tuple(arguments), run, shaped, script.options)


def _shape(run: Invocation, script: Script, job: Shape) -> Shape:
    if run.step is None:
        return Shape(1, 1, 1, 1, job.cpus, job.gpus, job.whole)
    group = run.step.options.get("het-group")
    number = numbers.whole(group.value) if group else 0
    if number and number < len(script.components):
        job = shape(script.components[number])
    return shape(run.step.options, job)


def _module(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The module of `python -m MODULE`, "" without one; and what follows it, or the script and
    what follows that.
    """
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            return (words[at + 1], words[at + 2 :]) if at + 1 < len(words) else ("", ())
        if words[at] == "-c":
            return "", ()
        at += 2 if words[at] in ("-W", "-X") else 1
    return "", words[at:]


def _options(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    options: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        name = _SHORT.get(name, name)
        if has_value:
            options[name] = value
        elif name in _SWITCHES or at >= len(words):
            options[name] = ""
        else:
            options[name] = words[at]
            at += 1
    return options, words[at:]
