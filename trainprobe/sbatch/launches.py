"""What in a script starts the training: torchrun, accelerate, deepspeed, or plain Python in the
tasks of a step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.layout import Shape, shape
from trainprobe.sbatch.script import Done, Script, Step

_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_PROGRAMS = {"torchrun": "torchrun", "accelerate": "accelerate", "deepspeed": "deepspeed"}
# Switches of the launchers that take no value (torch/distributed/run.py,
# accelerate/commands/launch.py, deepspeed/launcher/runner.py).
_SWITCHES = {
    "standalone",
    "no-python",
    "run-path",
    "module",
    "m",
    "multi-gpu",
    "use-deepspeed",
    "use-fsdp",
    "quiet",
    "debug",
    "no-local-rank",
    "force-multi",
    "mixed-precision-off",
    "save-pid",
    "no-ssh-check",
    "bind-cores-to-rank",
    "cpu",
    "mps",
    "use-env",
    "use_env",
    "use-megatron-lm",
    "same-network",
    "no-ssh",
}
_SHORT = {"r": "redirects", "t": "tee", "i": "include", "e": "exclude", "H": "hostfile"}
_NO_TRAINING = re.compile(
    r"(?:.*/)?(?:setup|install|download|prepare|preprocess|tokeni[sz]e|convert|check|collect_env"
    r"|env)[a-z0-9_]*\.py"
)


@dataclass(frozen=True)
class Launch:
    """One start of a training. `program` is torchrun, accelerate, deepspeed, or python.

    `options` are the launcher's own, without dashes in front and with `-` between words; `script`
    is what it runs, "" for a module or where it is not known. `shape` is that of the step, or of
    the batch shell alone without one.
    """

    program: str
    options: Mapping[str, str]
    script: str
    arguments: tuple[str, ...]
    done: Done
    shape: Shape
    module: bool = False

    @property
    def line(self) -> int:
        return self.done.line

    @property
    def step(self) -> Step | None:
        return self.done.step

    @property
    def per_node(self) -> int | None:
        """The ranks that one launcher starts, None where it is not known; one for plain Python."""
        if self.program == "python":
            return 1
        told = self.options.get(
            {"torchrun": "nproc-per-node", "deepspeed": "num-gpus"}.get(self.program, ""), ""
        )
        if self.program == "accelerate":
            every = numbers.whole(self.options.get("num-processes", ""))
            machines = numbers.whole(self.options.get("num-machines", "1")) or 1
            return every // machines if every is not None else None
        if told in ("gpu", "auto") or (not told and self.program == "deepspeed"):
            return self.shape.gpus
        return numbers.whole(told) if told else 1

    @property
    def machines(self) -> tuple[int, int] | None:
        """The nodes that the launcher was told of, as least and most, None where they are not
        known here.
        """
        name = {"torchrun": "nnodes", "accelerate": "num-machines", "deepspeed": "num-nodes"}.get(
            self.program
        )
        told = self.options.get(name, "") if name else ""
        if not told:
            return (1, 1) if self.program in ("torchrun", "accelerate") else None
        least, _, most = told.partition(":")
        low, high = numbers.whole(least), numbers.whole(most or least)
        return (low, high) if low is not None and high is not None else None

    def value(self, *names: str) -> str | None:
        return next((self.options[name] for name in names if name in self.options), None)


def launches(script: Script) -> tuple[Launch, ...]:
    """Return what starts a training, launchers and steps first: a helper in Python beside them
    counts only where there is nothing else.
    """
    job = shape(script.options)
    found = [
        one for one in (_launch(done, script, job) for done in script.commands) if one is not None
    ]
    distributed = [one for one in found if one.program != "python" or one.step is not None]
    chosen = distributed or found[-1:]
    named = [
        one
        for one in chosen
        if not (one.program == "python" and _NO_TRAINING.fullmatch(one.script))
    ] or chosen
    return tuple(named)


def _launch(done: Done, script: Script, job: Shape) -> Launch | None:
    words = done.words
    name = words[0].rpartition("/")[2]
    program = _PROGRAMS.get(name)
    rest: Sequence[str] = words[1:]
    if program == "accelerate":
        if tuple(rest[:1]) != ("launch",):
            return None
        rest = rest[1:]
    if program is None and _PYTHON.fullmatch(words[0]):
        module, behind = _module(rest)
        if module in _MODULES:
            program, rest = _MODULES[module], behind
        elif module or behind:
            return _plain(done, script, job, module, behind)
    if program is None:
        return None
    options, behind = _options(rest)
    module_given = "m" in options or "module" in options
    return Launch(
        program,
        options,
        "" if module_given else (behind[0] if behind else ""),
        tuple(behind[1:]),
        done,
        _shape(done, script, job),
        module_given,
    )


def _plain(
    done: Done, script: Script, job: Shape, module: str, behind: Sequence[str]
) -> Launch | None:
    if module and (
        module.partition(".")[0]
        in ("pip", "venv", "json", "http", "zipfile", "site", "ensurepip", "pytest", "conda")
    ):
        return None
    if not module and (not behind[0].endswith(".py") and not behind[0].startswith("$")):
        return None
    return Launch(
        "python",
        {},
        "" if module else behind[0],
        tuple(behind if module else behind[1:]),
        done,
        _shape(done, script, job),
        bool(module),
    )


def _shape(done: Done, script: Script, job: Shape) -> Shape:
    if done.step is None:
        return Shape(1, 1, 1, 1, job.cpus, job.gpus, job.whole)
    group = done.step.options.get("het-group")
    number = numbers.whole(group.value) if group else 0
    if number and number < len(script.components):
        job = shape(script.components[number])
    return shape(done.step.options, job)


def _module(rest: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The module of `python -m MODULE`, "" without one, and what stands behind it or from the
    script on.
    """
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        if rest[at] == "-m":
            return (rest[at + 1], rest[at + 2 :]) if at + 1 < len(rest) else ("", ())
        if rest[at] == "-c":
            return "", ()
        at += 2 if rest[at] in ("-W", "-X") else 1
    return "", rest[at:]


def _options(rest: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    found: dict[str, str] = {}
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        word = rest[at]
        at += 1
        if word == "--":
            break
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        name = _SHORT.get(name, name)
        if has_value:
            found[name] = value
        elif name in _SWITCHES or at >= len(rest):
            found[name] = ""
        else:
            found[name] = rest[at]
            at += 1
    return found, rest[at:]
