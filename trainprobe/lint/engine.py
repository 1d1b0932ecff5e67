"""All rules over one program."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Collection, Iterable

from trainprobe.lint import calls, rules
from trainprobe.lint.collector_pause import collector_paused
from trainprobe.lint.ignores import is_ignored, waivers
from trainprobe.lint.model import SHOWN_FROM, Finding, NotRead, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program, problem_of

MOST_TRIES = 64
"""How often one rule is run: after a failure it is run on halves of the program until the files on
which it fails are known.
"""


def all_rules() -> list[Rule]:
    """Return the rules that the files of the folder `rules` declare, by id."""
    modules = [
        importlib.import_module(f"{rules.__name__}.{file.name}")
        for file in pkgutil.iter_modules(rules.__path__)
    ]
    found = [dataclasses.replace(module.RULE, find=module.find) for module in modules]
    return sorted(found, key=lambda rule: rule.id)


def known_ids() -> frozenset[str]:
    """Return the names that can be selected or ignored: rules, and the causes that they find."""
    return frozenset(name for rule in all_rules() for name in (rule.id, rule.cause, *rule.also))


def findings_of(
    program: Program,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    hints: bool = False,
    chosen: Iterable[Rule] | None = None,
) -> tuple[list[Finding], list[NotRead]]:
    """Run the rules; return unwaived findings above `SHOWN_FROM`, in source order. `select` and
    `ignore` name causes or rules; a selected finding is shown however unsure it
    is, and with `hints` every one is.
    """
    found: list[Finding] = []
    trouble: list[NotRead] = []
    with collector_paused():
        calls.call_sites(program)
        for rule in all_rules() if chosen is None else chosen:
            ids = {rule.id, rule.cause, *rule.also}
            if rule.id not in ignore and (not select or ids & set(select)):
                found += _found_by(rule, program, trouble)
    files = {item.file for item in found}
    comments = {
        module.path: waivers(module.text)
        for module in program.modules.values()
        if module.path in files
    }
    remaining = {
        (item.file, item.line, item.column, item.id, item.rule): item
        for item in found
        if item.id not in ignore
        and item.rule not in ignore
        and (not select or item.id in select or item.rule in select)
        and (hints or item.confidence >= SHOWN_FROM or item.id in select or item.rule in select)
        and not is_ignored(item, comments.get(item.file, {}))
    }
    return sorted(
        remaining.values(), key=lambda item: (item.file, item.line, item.column, item.id)
    ), trouble


def for_a_running_job(found: Iterable[Finding]) -> list[Finding]:
    """Of all findings, those that stacks may bear out: the shown ones, and hints of such rules."""
    least = {rule.id: min(rule.plain_hint, SHOWN_FROM) for rule in all_rules()}
    return [one for one in found if one.confidence >= least[one.rule]]


def _found_by(rule: Rule, program: Program, trouble: list[NotRead]) -> list[Finding]:
    """Run one rule. Where it fails, narrow it down to skip only the files on which it fails."""
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
            calls.call_sites(program)
            if half and tries < MOST_TRIES:
                parts += [part[half:], part[:half]]
            else:
                where = part[0].path if len(part) == 1 else ""
                whose = "" if where else f"{len(part):,} files, {part[0].path} the first: "
                trouble.append(
                    NotRead(
                        where,
                        f"{whose}The rule {rule.id} was left out: {problem_of(error)}.",
                        rule.id,
                    )
                )
    program.examined = list(program.modules.values())
    return found
