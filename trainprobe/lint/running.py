"""All rules over one program."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterable

from trainprobe.lint import calls, rules
from trainprobe.lint.ignores import is_ignored, waivers
from trainprobe.lint.model import SHOWN_FROM, Finding, NotRead, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program, problem_of

MOST_TRIES = 64
"""Runs of one rule: halves of a program are tried again until the files on which it fails are known, some ten of a thousand."""


def all_rules() -> list[Rule]:
    """Return the rules of the folder `rules`, by id."""
    found = [importlib.import_module(f"{rules.__name__}.{one.name}") for one in pkgutil.iter_modules(rules.__path__)]
    return sorted((one.RULE for one in found if hasattr(one, "RULE")), key=lambda rule: rule.id)


def known_ids() -> frozenset[str]:
    """Return the names that can be selected or ignored: rules, and the causes that they find."""
    return frozenset(name for rule in all_rules() for name in (rule.id, rule.cause, *rule.also))


def findings_of(
    program: Program, *, select: Collection[str] = (), ignore: Collection[str] = (), chosen: Iterable[Rule] | None = None
) -> tuple[list[Finding], list[NotRead]]:
    """Run the rules and return what they find, in the order of the source, without what is waived or too little sure.

    `select` and `ignore` name causes or rules. What is selected by name is shown however unsure it is.
    """
    found: list[Finding] = []
    trouble: list[NotRead] = []
    calls.calls_of(program)
    for rule in all_rules() if chosen is None else chosen:
        if rule.id in ignore or (select and not {rule.id, rule.cause, *rule.also} & set(select)):
            continue
        found += _found_by(rule, program, trouble)
    files = {one.file for one in found}
    comments = {module.path: waivers(module.text) for module in program.modules.values() if module.path in files}
    kept = {
        (one.file, one.line, one.column, one.id, one.rule): one
        for one in found
        if one.id not in ignore
        and one.rule not in ignore
        and (not select or one.id in select or one.rule in select)
        and (one.confidence >= SHOWN_FROM or one.id in select or one.rule in select)
        and not is_ignored(one, comments.get(one.file, {}))
    }
    return sorted(kept.values(), key=lambda one: (one.file, one.line, one.column, one.id)), trouble


def _found_by(rule: Rule, program: Program, trouble: list[NotRead]) -> list[Finding]:
    """What one rule finds. A rule that fails is tried on ever smaller parts of the program, so that it is left out for the files that it fails on alone."""
    found: list[Finding] = []
    parts: list[list[Module]] = [list(program.modules.values())]
    tries = 0
    while parts:
        program.examined = parts.pop()
        tries += 1
        try:
            found += list(rule.find(program))
        except Exception as error:  # noqa: BLE001 - a rule that stumbles over a stranger's source must not cost the others
            part, half = program.examined, len(program.examined) // 2
            program.forget()
            calls.calls_of(program)
            if half and tries < MOST_TRIES:
                parts += [part[half:], part[:half]]
            else:
                where = part[0].path if len(part) == 1 else ""
                whose = "" if where else f"{len(part):,} files, {part[0].path} the first: "
                trouble.append(NotRead(where, f"{whose}The rule {rule.id} was left out: {problem_of(error)}.", rule.id))
    program.examined = list(program.modules.values())
    return found
