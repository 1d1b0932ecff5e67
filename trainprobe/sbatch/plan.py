"""All that is known of a job before it is submitted, in one place for the rules, and the edits that
they may propose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Edit, Edits
from trainprobe.sbatch.launches import Launch, launches
from trainprobe.sbatch.layout import Shape, shape
from trainprobe.sbatch.options import Option
from trainprobe.sbatch.script import Assignment, Script
from trainprobe.sbatch.site import LoginNode, Node, Partition, Site

_LETTERS = {
    "ntasks": "n",
    "nodes": "N",
    "cpus-per-task": "c",
    "time": "t",
    "partition": "p",
    "output": "o",
    "error": "e",
    "job-name": "J",
    "gpus": "G",
}


@dataclass(frozen=True)
class Plan:
    """A script, the site it is for, and the login node on which it was read."""

    script: Script
    site: Site = field(default_factory=Site)
    login: LoginNode = field(default_factory=LoginNode)

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options of the component in which the training runs."""
        groups = [
            launch.step.options["het-group"].value
            for launch in self.launches
            if launch.step is not None and "het-group" in launch.step.options
        ]
        number = numbers.whole(groups[0]) if groups else 0
        parts = self.script.components
        return parts[number] if number is not None and number < len(parts) else parts[0]

    def option(self, name: str) -> str | None:
        """The value of an option, None where it is not set."""
        option = self.options.get(name)
        return option.value if option else None

    @cached_property
    def job(self) -> Shape:
        return shape(self.options)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        return launches(self.script)

    @cached_property
    def partition(self) -> Partition | None:
        return self.site.partition(self.option("partition") or "")

    @property
    def partition_name(self) -> str:
        return self.partition.name if self.partition else "the cluster"

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes on which the job may run: those of its partition, limited by --nodelist and
        --exclude.
        """
        listed = set(numbers.hosts(self.option("nodelist") or ""))
        excluded = set(numbers.hosts(self.option("exclude") or ""))
        return tuple(
            node
            for node in self.site.nodes_of(self.partition)
            if (not listed or node.name in listed) and node.name not in excluded
        )

    @property
    def exclusive(self) -> bool:
        partition = self.partition
        return "exclusive" in self.options or (partition is not None and partition.exclusive)

    @property
    def world(self) -> int:
        """The ranks of the largest launch, as far as they are known; at least 1."""
        return max((ranks_of(launch) or 1 for launch in self.launches), default=1)

    def about(self, launch: Launch) -> Mapping[str, Any]:
        """What the source of a launch's program shows, empty where it was not read."""
        return self.login.programs.get(launch.script, {})

    def assignment(self, name: str = "", *, line: int = 0, value: str = "") -> Assignment | None:
        """The last assignment in the script with this name, line and value, as far as they are
        given.
        """
        return next(
            (
                assigned
                for assigned in reversed(self.script.assigned)
                if name in ("", assigned.name)
                and line in (0, assigned.line)
                and value in ("", assigned.value)
            ),
            None,
        )

    @property
    def above_commands(self) -> int:
        """The line above which a directive may be put: behind the last one, or below the first
        line.
        """
        last = max((option.line for option in self.script.options.values()), default=0)
        if last > 0:
            return last + 1
        return 2 if self.script.line(1).startswith("#!") else 1

    def setting(self, name: str, value: str) -> Edits:
        """The edits that give an option this value: in its own line, or in a new line. None where
        it is set outside of the script.
        """
        option = self.options.get(name)
        if option is None:
            return (Edit(self.above_commands, "insert", f"#SBATCH --{name}={value}"),)
        if option.line <= 0:
            return ()
        forms = []
        if option.spelled.startswith("--"):
            spelled = re.escape(option.spelled.lstrip("-").partition("=")[0])
            forms.append(rf"(--{spelled}(?:=|\s+))(\"[^\"]*\"|'[^']*'|\S+)")
        if name in _LETTERS:
            forms.append(rf"((?<!\S)-{_LETTERS[name]}\s*)(\S+)")
        for form in forms:
            match = re.search(form, self.script.line(option.line))
            if match:
                return (Edit(option.line, "swap", f"{match[1]}{value}", match[0]),)
        return ()

    def swap(self, launch: Launch, pattern: str, text: str) -> Edits:
        """Replace what the pattern finds in the lines of a launch; otherwise in the only line of
        the script that matches it.
        """
        lines = self.script.lines
        matching = [number for number, line in enumerate(lines, 1) if re.search(pattern, line)]
        command = launch.run.command
        own = [number for number in matching if command.line <= number <= command.last]
        active = [n for n in matching if not lines[n - 1].lstrip().startswith("#")]
        number = own[0] if own else active[0] if len(active) == 1 else 0
        match = re.search(pattern, self.script.line(number))
        return (Edit(number, "swap", text, match[0]),) if match else ()

    def swap_in(self, line: int, text: str, replacement: str) -> Edits:
        """Replace `text` in one line of the script, where it occurs in that line."""
        if not text or text not in self.script.line(line):
            return ()
        return (Edit(line, "swap", replacement, text),)

    def prefixed(self, launch: Launch, prefix: str) -> Edits:
        """Put `prefix` in front of a launch that begins its line."""
        name = launch.run.command.words[0]
        if not self.script.line(launch.line).lstrip().startswith(name):
            return ()
        return (Edit(launch.line, "swap", f"{prefix} {name}", name),)

    def before_launches(self, text: str) -> Edits:
        """Put a line above the first launch, outside of brackets and of commands that span
        several lines.
        """
        if not self.launches:
            return ()
        first = min(launch.line for launch in self.launches)
        outside = [
            run.line
            for run in self.script.commands
            if run.line <= first and not run.command.nested and run.step is None and run.line > 0
        ]
        return (Edit(max(outside, default=first), "insert", text),)

    def line_of(self, *names: str) -> int:
        """The line of the first of these options that the script sets, 0 for none."""
        lines = (self.options[name].line for name in names if name in self.options)
        return next((line for line in lines if line > 0), 0)


def ranks_of(launch: Launch) -> int | None:
    """The ranks that a launch starts in total, None where that is not known."""
    if launch.program == "python":
        return launch.shape.all_tasks if launch.step is not None else 1
    each, machines = launch.per_node, launch.machines
    if each is None:
        return None
    nodes = machines[1] if launch.step is None and machines else launch.shape.nodes
    return each * max(1, nodes)


def ranks_on_node(launch: Launch) -> int | None:
    """The ranks that a launch starts on one node."""
    return launch.shape.tasks_on_node if launch.program == "python" else launch.per_node
