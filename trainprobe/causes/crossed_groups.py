"""Calls of one operation on several process groups, as the source lines spell them: two camps on
two groups, or all ranks at one line that names a group of each rank's own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainprobe.causes.diverging_calls import Place, camps
from trainprobe.causes.parting_values import behind
from trainprobe.causes.phrases import file_line, ranks_say, verb
from trainprobe.causes.scene import Scene
from trainprobe.facts import Block, SourceSite
from trainprobe.stacks.places import is_user, user_frame

TEXT_CAP = 500
_NAMES_A_GROUP = re.compile(r"group|world|mesh|pg\b", re.IGNORECASE)
_OF_A_MESH = re.compile(r"\bget_group\(|mesh", re.IGNORECASE)


def crossed_groups(
    scene: Scene, found: dict[int, Place]
) -> tuple[tuple[str, str], tuple[SourceSite, SourceSite]] | None:
    """The two groups as spelled, and the two lines; None unless there are two camps, in one
    function, of which neither alone stands under an `if`. Of two lines that follow each other see
    `gone_past`.
    """
    lines = _two_lines(scene, found)
    return None if lines is None or _follow(*lines[1]) else lines


@dataclass(frozen=True)
class GonePast:
    """Two lines that call one operation, on these groups, follow each other on every rank, and the
    `later` ranks stand at the second: one of them has left out a call of the first.
    """

    groups: tuple[str, str]
    sites: tuple[SourceSite, SourceSite]
    later: tuple[int, ...]
    waiting: tuple[int, ...]

    def __str__(self) -> str:
        one, other = self.sites
        return (
            f"{ranks_say(self.waiting)} {verb(self.waiting, 'waits', 'wait')} at"
            f" {file_line(one.file, one.line)} on `{self.groups[0]}`, which"
            f" {ranks_say(self.later, capital=False)} {verb(self.later, 'has', 'have')} gone past,"
            f" to line {other.line} on `{self.groups[1]}`: one of its ranks left a call out"
        )


def gone_past(scene: Scene, found: dict[int, Place]) -> GonePast | None:
    """As `crossed_groups`, of two lines that follow each other; None where the ranks are known to
    be in different passes of a loop around them.
    """
    lines = _two_lines(scene, found)
    if lines is None or not _follow(*lines[1]) or behind(scene) is not None:
        return None
    groups, (one, other) = lines
    waiting, later = camps(found)
    if one.line < other.line:
        return GonePast(groups, (one, other), later, waiting)
    return GonePast((groups[1], groups[0]), (other, one), waiting, later)


def _two_lines(
    scene: Scene, found: dict[int, Place]
) -> tuple[tuple[str, str], tuple[SourceSite, SourceSite]] | None:
    sides = camps(found)
    if len(sides) != 2 or len({found[side[0]].op for side in sides}) != 1:
        return None
    one, other = (_site(scene, found[side[0]]) for side in sides)
    if (
        one is None
        or other is None
        or (one.file, one.function) != (other.file, other.function)
        or not _alike(one.blocks, other.blocks)
    ):
        return None
    groups = (_group(one.text, found[sides[0][0]].op), _group(other.text, found[sides[1][0]].op))
    if groups == ("", "") and _passes_a_group(scene, found[sides[0][0]]):
        groups = _arguments(one.text, other.text)
    return (groups, (one, other)) if all(groups) and groups[0] != groups[1] else None


def one_line_for_groups(
    scene: Scene, found: dict[int, Place]
) -> tuple[str, SourceSite, SourceSite | None] | None:
    """The group as spelled at the one line in which all ranks of the world wait, that line, and
    the line in a loop over groups that leads to it, where there is one.

    Ranks that had come to one call on one group would leave it. None where no group is named or
    the world's is, and where one operation of theirs is a send or a receive.
    """
    if len(found) != len(scene.world) or len(found) < 3 or len(camps(found)) != 1:
        return None
    place = next(iter(found.values()))
    sites = scene.sites(frame for frame in reversed(place.frames) if is_user(frame))
    named = ((site, _group(site.text, place.op)) for site in sites)
    site, group = next((pair for pair in named if pair[1]), (None, ""))
    if site is None or group == "None" or "world" in group.lower():
        return None
    return group, site, _loop_over(group, sites[sites.index(site) :])


def _loop_over(group: str, sites: Sequence[SourceSite]) -> SourceSite | None:
    """The line in a `for` that goes through the groups: that of the call itself, or that of a
    caller which passes what the loop gives it. `sites`: the call's line first, then its callers'.
    """
    name = group
    for site, above in zip(sites, (*sites[1:], None), strict=True):
        loops = (block.text.partition(" in ")[0] for block in site.blocks if block.kind == "for")
        if any(name in re.findall(r"\w+", target)[1:] for target in loops):
            return site
        name = _passed_as(name, site, above) if above is not None else ""
        if not name:
            break
    return None


def _passed_as(parameter: str, site: SourceSite, caller: SourceSite) -> str:
    """The name that a caller's line passes for a parameter of the function that it calls."""
    head = next((block.text for block in site.blocks if block.kind == "def"), "")
    inside = re.search(r"\((.*)\)", head)
    names = (
        [part.partition(":")[0].partition("=")[0].strip() for part in inside[1].split(",")]
        if inside
        else []
    )
    if parameter not in names:
        return ""
    place = names.index(parameter) - (names[0] in ("self", "cls"))
    for call in _calls(caller.text):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if isinstance(call.func, ast.Name):
            called = call.func.id
        if called == site.function.rpartition(".")[2]:
            given = {word.arg: word.value for word in call.keywords}.get(parameter)
            given = given or next(iter(call.args[place : place + 1]), None)
            return given.id if isinstance(given, ast.Name) else ""
    return ""


def along_a_mesh(scene: Scene, found: dict[int, Place]) -> tuple[str, SourceSite] | None:
    """The group of the smallest camp's call as spelled, and its line, where it is one along a
    dimension of a device mesh and the other camp's call is on another.

    Such a group has fewer ranks than the world: who waits in it waits for its members, and those
    who are elsewhere may have made the call already.
    """
    sides = camps(found)
    if len(sides) != 2:
        return None
    one, other = (_site(scene, found[side[0]]) for side in sides)
    group = _group(one.text, found[sides[0][0]].op) if one is not None else ""
    if (
        one is None
        or not _OF_A_MESH.search(group)
        or (other is not None and _group(other.text, found[sides[1][0]].op) == group)
    ):
        return None
    return group, one


def _site(scene: Scene, place: Place) -> SourceSite | None:
    return scene.site(place.file, place.line)


def _alike(one: tuple[Block, ...], other: tuple[Block, ...]) -> bool:
    """Do both lines stand below the same statements, or in the two branches of one of them?"""
    return [(block.kind, block.line) for block in one] == [
        (block.kind, block.line) for block in other
    ]


def _follow(one: SourceSite, other: SourceSite) -> bool:
    """Do the two stand in the same branches, so that whoever comes to the later has passed the
    earlier?
    """
    mine, theirs = ([block.branch for block in site.blocks] for site in (one, other))
    return one.line != other.line and mine == theirs


def _passes_a_group(scene: Scene, place: Place) -> bool:
    """Does the call that both lines lead to name a group?"""
    frame = user_frame(place.frames)
    site = scene.site(frame.file, frame.line) if frame is not None else None
    return site is not None and bool(_group(site.text, place.op))


def _arguments(one: str, other: str) -> tuple[str, str]:
    """What two calls of one function pass that is not the same, by name or place, groups first;
    empty where there is nothing.
    """
    first, second = next(_calls(one), None), next(_calls(other), None)
    if first is None or second is None or ast.unparse(first.func) != ast.unparse(second.func):
        return "", ""
    given = {word.arg: word.value for word in second.keywords}
    pairs = [
        *((word.value, given[word.arg]) for word in first.keywords if word.arg in given),
        *zip(first.args, second.args, strict=False),
    ]
    spelled = [(ast.unparse(mine)[:60], ast.unparse(theirs)[:60]) for mine, theirs in pairs]
    apart = [pair for pair in spelled if pair[0] != pair[1]]
    named = [pair for pair in apart if all(map(_NAMES_A_GROUP.search, pair))]
    return next(iter(named or apart), ("", ""))


def _calls(text: str) -> Iterator[ast.Call]:
    """The calls in a line, outermost first; none where it is no whole statement."""
    try:
        tree = ast.parse(text.strip()[:TEXT_CAP])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _group(text: str, op: str) -> str:
    """What a call of `op` in this line passes as `group`; empty where it does not say."""
    for call in _calls(text):
        func = call.func
        if (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) == op:
            given = (keyword.value for keyword in call.keywords if keyword.arg == "group")
            return next((ast.unparse(value)[:60] for value in given), "")
    return ""
