"""Ranks that an exception took out of the step: they wait inside its handler, where what is called
meets no other rank, or it was caught and they have gone on past the call in which the others wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.causes.last_printed import last_printed
from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, waits_for_ranks, weighing
from trainprobe.facts import MainThread, Output, RankException, SourceSite
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

# What is caught in the course of things: the end of an iterator, an empty queue, a missing module.
_IN_THE_COURSE = re.compile(
    r"Stop(?:Async)?Iteration|\b(?:Empty|Full)\b|ImportError|ModuleNotFoundError|TimeoutE|Timeout\b"
    r"|FileExistsError|FileNotFoundError|BlockingIOError|GeneratorExit|AttributeError"
    r"|NotImplementedError|KeyboardInterrupt"
)
# Hooks that frameworks call for an exception: Lightning's Callback, sys.excepthook, our own words.
_HOOKS = re.compile(r"(?:^|\.)(?:on_exception|excepthook|handle_(?:exception|error)|on_error)$")
_NAMES_AN_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")
_LAST_LINES = 5


@dataclass(frozen=True)
class Handled:
    """`header` is the handler's, `except KeyError:` say, or the hook's name, at `line` (0 for a
    hook). `said` is the line of its output that names the error, "" where none does.
    """

    thread: MainThread
    header: str
    line: int
    said: str = ""
    output: Output | None = None
    site: SourceSite | None = None

    @property
    def said_before(self) -> bool:
        """Does its output name the error in another line than the last?"""
        tail = self.output.tail.rstrip() if self.output is not None else ""
        return bool(self.said) and not tail.endswith(self.said)

    @property
    def says(self) -> str:
        """`stands under `except KeyError:` (line 54)`, behind a rank."""
        if not self.line:
            return f"stands in {self.header}, which is called for an exception"
        return f"stands under `{short(self.header, 60)}` (line {self.line})"


def handled(scene: Scene) -> tuple[Handled, ...]:
    """The suspects of a live job that wait for other ranks inside a handler; () where nobody is
    outside of one.
    """
    if scene.live is None:
        return ()
    if handled not in scene.found:
        found = [one for thread in scene.threads(scene.world) if (one := _handled(scene, thread))]
        told = {one.thread.rank for one in found}
        alone = len(told) < len(scene.world) and told <= set(scene.ranks)
        scene.found[handled] = tuple(found) if alone else ()
    known: tuple[Handled, ...] = scene.found[handled]
    return known


def out_of_the_step(scene: Scene) -> Weighings:
    """Against causes by which ranks part of their own accord: an exception took one out."""
    if caught := handled(scene):
        says = (
            f"An exception took it out of the step: rank {caught[0].thread.rank} {caught[0].says}"
        )
        yield weighing(-26, "suspects-stack", says, *(one.thread for one in caught))


@dataclass(frozen=True)
class Caught:
    """An exception that was caught and printed last of all: it was raised `at` a line shortly
    before the call in which `others` wait, `before` that line, in the same function.
    """

    raised: RankException
    at: Frame
    before: Frame
    others: tuple[int, ...]

    @property
    def what(self) -> str:
        return short(f"{self.raised.type}: {self.raised.message}".rstrip(": "), 90)

    @property
    def says(self) -> str:
        return (
            f"{self.what} was raised at {self.at.where} and caught, and so the call at"
            f" {self.before.where}, in which {ranks_say(self.others, capital=False)} wait, was left"
            " out"
        )


def caught_before(scene: Scene) -> Caught | None:
    """What took some ranks past the call in which the others wait; None where nothing tells."""
    if caught_before not in scene.found:
        scene.found[caught_before] = _caught_before(scene)
    known: Caught | None = scene.found[caught_before]
    return known


def _caught_before(scene: Scene) -> Caught | None:
    if scene.live is None or scene.group.mode != "hang":
        return None
    last = last_printed(scene, None)
    raised = [one for one in scene.of(RankException) if not (one.echo or one.interrupted)]
    for one in reversed(raised):
        name = one.type.rsplit(".", 1)[-1]
        if last is None or not name or name not in last.line:
            continue  # those that went on have trained since
        for thread in scene.threads(scene.world):
            found = _line_before(one.frames, thread.frames) if thread.rank != one.rank else None
            if found is None or not waits_for_ranks(thread):
                continue
            there = thread.where
            others = tuple(
                other.rank
                for other in scene.threads(scene.world)
                if other.where == there and other.rank is not None
            )
            if len(others) < len(scene.world):
                return Caught(one, *found, others)
    return None


def _line_before(raised: Sequence[Frame], waits: Sequence[Frame]) -> tuple[Frame, Frame] | None:
    """The innermost frames of the user's that two stacks have in one function, where the first is
    not further down in it.
    """
    for there in reversed([frame for frame in waits if is_user(frame)]):
        for at in reversed([frame for frame in raised if is_user(frame)]):
            if (at.file, at.function) == (there.file, there.function):
                return (at, there) if at.line <= there.line else None
    return None


def _handled(scene: Scene, thread: MainThread) -> Handled | None:
    if not waits_for_ranks(thread):
        return None
    for frame in thread.frames:
        if not is_user(frame):
            continue
        header, line, site = "", 0, scene.site(frame.file, frame.line)
        for block in site.blocks if site is not None else ():
            if block.branch == "handler" and not _IN_THE_COURSE.search(block.text):
                header, line = block.text, block.line
        if not header and _HOOKS.search(frame.name):
            header = frame.name
        if header:
            said, output = _said(scene, thread.rank)
            return Handled(thread, header, line, said, output, site)
    return None


def _said(scene: Scene, rank: int | None) -> tuple[str, Output | None]:
    """The last line of its output that names an error; of a common stream, the last one of all."""
    for whose in (rank, None):
        last = last_printed(scene, whose)
        if last is None:
            continue
        lines = [line.strip() for line in last.output.tail.splitlines() if line.strip()]
        for line in reversed(lines[-_LAST_LINES:]):
            if _NAMES_AN_ERROR.search(line):
                return line, last.output
    return "", None
