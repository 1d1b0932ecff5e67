"""What a module's code mentions; comments and docstrings state intentions and do not count."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program, remembered

NAMED = ("id", "attr", "arg")
JOINS = {
    "accelerate": {"Accelerator", "PartialState", "AcceleratorState"},
    "deepspeed": {"initialize", "init_distributed"},
    "lightning": {"Trainer", "Fabric", "LightningModule", "LightningDataModule", "LightningCLI"},
}
"""What of a framework runs a job: it binds devices and cuts the data."""
COMMAND = re.compile(
    r"^[\s#$>`]*([A-Z_]+=\S+\s+)*(torchrun|accelerate\s+launch|deepspeed"
    r"|python3?\s+-m\s+torch\.distributed\.(run|launch))\s.*\.py\b",
    re.MULTILINE,
)


class Mentions(NamedTuple):
    """`names`: variables, attributes and keywords in use, not only imported or defined. `packages`:
    first parts of imported names. `texts`: constants that are no docstrings.
    """

    names: frozenset[str]
    packages: frozenset[str]
    texts: frozenset[str]


@remembered
def mentions(program: Program, module: Module) -> Mentions:  # noqa: ARG001 - it keeps the answers
    """Return what the code of a module mentions."""
    return Mentions(_names(module), _packages(module), _texts(module))


def is_named(program: Program, modules: list[Module], *names: str) -> bool:
    """Whether one of the modules uses one of these names, also as text for `getattr`."""
    return any(
        holder.names.intersection(names) or holder.texts.intersection(names)
        for holder in (mentions(program, module) for module in modules)
    )


def is_run_by(program: Program, modules: list[Module], *frameworks: str) -> bool:
    """Whether one of the modules lets one of these frameworks run the job; to import it for
    something else is not enough.
    """
    held = [mentions(program, module) for module in modules]
    return any(
        any(holder.names & JOINS[framework] for holder in held)
        and any(
            package.removeprefix("pytorch_").startswith(framework)
            for holder in held
            for package in holder.packages
        )
        for framework in frameworks
    )


def mentions_pattern(program: Program, modules: list[Module], pattern: re.Pattern[str]) -> bool:
    """Whether a name or a text in the code matches."""
    return any(
        pattern.search(text)
        for module in modules
        for part in mentions(program, module)
        for text in part
    )


def is_launched(module: Module) -> bool:
    """Whether a command line in a comment or docstring launches this file."""
    return COMMAND.search(module.text) is not None


def _names(module: Module) -> frozenset[str]:
    found = {name.id for name in module.of(ast.Name) if isinstance(name.ctx, ast.Load)}
    found.update(attribute.attr for attribute in module.of(ast.Attribute))
    found.update(keyword.arg for keyword in module.of(ast.keyword) if keyword.arg)
    # A name under an alias is used where the alias is.
    for statement in module.of(ast.ImportFrom):
        found.update(alias.name for alias in statement.names if alias.asname in found)
    return frozenset(found)


def _packages(module: Module) -> frozenset[str]:
    found = {
        alias.name.partition(".")[0]
        for statement in module.of(ast.Import)
        for alias in statement.names
    }
    found.update(
        (statement.module or "").partition(".")[0]
        for statement in module.of(ast.ImportFrom)
        if not statement.level
    )
    return frozenset(found)


def _texts(module: Module) -> frozenset[str]:
    found = (
        constant
        for constant in module.of(ast.Constant)
        if isinstance(constant.value, str)
        and not isinstance(module.parents.get(constant), ast.Expr)
    )
    return frozenset(str(item.value) for item in found if len(str(item.value)) <= 200)
