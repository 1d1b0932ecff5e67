"""All that is known of a job before it is submitted, in one place for the rules, and the changes
that they may propose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Edit, Finding, State
from trainprobe.sbatch.launches import Launch, launches
from trainprobe.sbatch.layout import Shape, shape
from trainprobe.sbatch.options import Option
from trainprobe.sbatch.script import Script
from trainprobe.sbatch.site import Here, Node, Partition, Site

_SPELLED = {
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
    here: Here = field(default_factory=Here)

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options of the part of the job in which the training runs; of a plain job all."""
        groups = [
            one.step.options["het-group"].value
            for one in self.launches
            if one.step is not None and "het-group" in one.step.options
        ]
        number = numbers.whole(groups[0]) if groups else 0
        parts = self.script.components
        return parts[number] if number is not None and number < len(parts) else parts[0]

    def given(self, name: str) -> str | None:
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
        return self.site.partition(self.given("partition") or "")

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes on which it may run: those of its partition, by name or without those left
        out.
        """
        found = self.site.nodes_of(self.partition)
        wanted, without = (
            set(numbers.hosts(self.given("nodelist") or "")),
            set(numbers.hosts(self.given("exclude") or "")),
        )
        return tuple(
            node
            for node in found
            if (not wanted or node.name in wanted) and node.name not in without
        )

    @property
    def exclusive(self) -> bool:
        return "exclusive" in self.options or (
            self.partition is not None and self.partition.exclusive
        )

    @property
    def world(self) -> int:
        """The ranks of the largest launch, as far as they are known, 1 at least."""
        return max((ranks_of(one) or 1 for one in self.launches), default=1)

    @property
    def above_commands(self) -> int:
        """The line above which a directive may be put: behind the last one, or below the first
        line.
        """
        lines = self.script.lines
        last = max(
            (
                option.line
                for part in self.script.components[:1]
                for option in part.values()
                if option.line > 0
            ),
            default=0,
        )
        if last:
            return last + 1
        return 2 if lines and lines[0].startswith("#!") else 1

    def setting(self, name: str, value: str) -> tuple[Edit, ...]:
        """The changes that give an option this value: of the line that has it, or as a line of
        its own. None where it stands outside of the script.
        """
        option = self.options.get(name)
        if option is None:
            return (Edit(self.above_commands, "insert", f"#SBATCH --{name}={value}"),)
        if option.line <= 0:
            return ()
        line = self.script.lines[option.line - 1]
        short = _SPELLED.get(name)
        forms = (
            [
                (
                    rf"(--{re.escape(option.spelled.lstrip('-').partition('=')[0])}(?:="
                    rf"|\s+))(\"[^\"]*\"|'[^']*'|\S+)"
                )
            ]
            if option.spelled.startswith("--")
            else []
        )
        forms += [rf"((?<!\S)-{short}\s*)(\S+)"] if short else []
        for form in forms:
            told = re.search(form, line)
            if told:
                return (Edit(option.line, "swap", f"{told[1]}{value}", told[0]),)
        return ()

    def swap(self, launch: Launch, pattern: str, text: str) -> tuple[Edit, ...]:
        """Replace what the pattern finds in the lines of a launch, else in the one line of the
        script that has it.
        """
        lines = self.script.lines
        first, last = launch.done.line, max(launch.done.last, launch.done.line)
        near = [
            number
            for number in range(first, min(last, len(lines)) + 1)
            if re.search(pattern, lines[number - 1])
        ]
        every = [
            number
            for number, line in enumerate(lines, start=1)
            if re.search(pattern, line) and not line.lstrip().startswith("#")
        ]
        number = near[0] if near else every[0] if len(every) == 1 else 0
        if not number:
            return ()
        told = re.search(pattern, lines[number - 1])
        return (Edit(number, "swap", text, told[0]),) if told else ()

    def swap_in(self, line: int, text: str, other: str) -> tuple[Edit, ...]:
        """Replace `text` in one line of the script, where it stands there."""
        if (
            not 1 <= line <= len(self.script.lines)
            or not text
            or text not in self.script.lines[line - 1]
        ):
            return ()
        return (Edit(line, "swap", other, text),)

    def before_launches(self, text: str) -> tuple[Edit, ...]:
        """Put a line above the first launch, outside of any bracket and of a command that goes
        over several lines.
        """
        if not self.launches:
            return ()
        first = min(one.line for one in self.launches)
        outside = [
            done.line
            for done in self.script.commands
            if done.line <= first and not done.nested and not done.task and done.line > 0
        ]
        return (Edit(max(outside, default=first), "insert", text),)

    def line_of(self, *names: str) -> int:
        return next(
            (
                self.options[name].line
                for name in names
                if name in self.options and self.options[name].line > 0
            ),
            0,
        )

    def where_of(self, name: str) -> str:
        option = self.options.get(name)
        return option.where if option else ""


def ranks_of(launch: Launch) -> int | None:
    """The ranks that a launch starts in all, None where that is not known."""
    if launch.program == "python":
        return launch.shape.all_tasks if launch.step is not None else 1
    each = launch.per_node
    if each is None:
        return None
    machines = launch.machines
    nodes = machines[1] if launch.step is None and machines else launch.shape.nodes
    return each * max(1, nodes)


def ranks_on_node(launch: Launch) -> int | None:
    """The ranks that a launch starts on one node."""
    return launch.shape.tasks_on_node if launch.program == "python" else launch.per_node


def skipped(name: str, says: str) -> Finding:
    return Finding(name, "skip", says)


def found(  # noqa: PLR0917 - the fields of a finding, in their order
    name: str,
    state: State,
    says: str,
    fix: str = "",
    line: int = 0,
    value: str = "",
    edits: tuple[Edit, ...] = (),
) -> Finding:
    return Finding(name, state, says, fix, line, value, edits)
