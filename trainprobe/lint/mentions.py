"""What the code of a module mentions. Comments and docstrings do not count: they say what somebody meant, and the code does another thing."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

NAMED = ("id", "attr", "arg")
COMMAND = re.compile(
    r"^[\s#$>`]*([A-Z_]+=\S+\s+)*(torchrun|accelerate\s+launch|deepspeed|python3?\s+-m\s+torch\.distributed\.(run|launch))\s.*\.py\b", re.MULTILINE
)


class Mentions(NamedTuple):
    """`names`: variables, attributes and keywords that are used, not those that are only imported or defined. `packages`: what is imported,
    the first part of its name. `texts`: constants that are no docstrings.
    """

    names: frozenset[str]
    packages: frozenset[str]
    texts: frozenset[str]


def mentions(program: Program, module: Module) -> Mentions:
    """Return what the code of a module mentions."""
    known: dict[Module, Mentions] = program.memory.setdefault("mentions", {})
    if module not in known:
        known[module] = Mentions(_names(module), _packages(module), _texts(module))
    return known[module]


def is_named(program: Program, modules: list[Module], *names: str) -> bool:
    """Whether the code of one of the modules uses one of these names: as variable, attribute, keyword, or as text, as `getattr` needs it."""
    return any(held.names.intersection(names) or held.texts.intersection(names) for held in (mentions(program, one) for one in modules))


def is_imported(program: Program, modules: list[Module], *packages: str) -> bool:
    """Whether one of the modules imports one of these packages."""
    return any(mentions(program, one).packages.intersection(packages) for one in modules)


def is_told_in(program: Program, modules: list[Module], pattern: re.Pattern[str]) -> bool:
    """Whether a name or a text in the code matches."""
    return any(pattern.search(word) for one in modules for part in mentions(program, one) for word in part)


def is_launched(module: Module) -> bool:
    """Whether a whole command line in a comment or docstring says that a launcher starts this file."""
    return COMMAND.search(module.text) is not None


def _names(module: Module) -> frozenset[str]:
    found = {one.id for one in module.of(ast.Name) if isinstance(one.ctx, ast.Load)}
    found.update(one.attr for one in module.of(ast.Attribute))
    found.update(one.arg for one in module.of(ast.keyword) if one.arg)
    # A name under an alias is used where the alias is.
    for statement in module.of(ast.ImportFrom):
        found.update(alias.name for alias in statement.names if alias.asname in found)
    return frozenset(found)


def _packages(module: Module) -> frozenset[str]:
    found = {alias.name.partition(".")[0] for one in module.of(ast.Import) for alias in one.names}
    found.update((one.module or "").partition(".")[0] for one in module.of(ast.ImportFrom) if not one.level)
    return frozenset(found)


def _texts(module: Module) -> frozenset[str]:
    told = (one for one in module.of(ast.Constant) if isinstance(one.value, str) and not isinstance(module.parents.get(one), ast.Expr))
    return frozenset(str(one.value) for one in told if len(str(one.value)) <= 200)
