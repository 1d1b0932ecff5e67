"""transformers' Trainer with a custom collator and the default of remove_unused_columns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import Call, calls_to, is_subclass
from trainprobe.lint.expressions import (
    Expression,
    class_of_object,
    has_unknown_arguments,
    origin,
    resolved_argument,
)
from trainprobe.lint.fixing import add_keyword
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function
from trainprobe.lint.program import Program

RULE = Rule(
    id="removed-columns",
    cause="trainer-removed-columns",
    title="Columns that the collator needs",
    why=(
        "The Trainer drops all columns that the model's forward() does not take, before the"
        " collator sees them: samples arrive without these keys, or empty."
    ),
    fix="Pass remove_unused_columns=False to TrainingArguments.",
    confidence=0.75,
)


TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
FORWARD = set(
    """
    input_ids attention_mask labels label label_ids token_type_ids position_ids pixel_values
    pixel_mask input_features input_values decoder_input_ids decoder_attention_mask inputs_embeds
    bbox start_positions end_positions length special_tokens_mask
    """.split()
)


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, *TRAINERS):
        collator = resolved_argument(program, call, "data_collator", 2)
        arguments = resolved_argument(program, call, "args", 1)
        if collator is None or arguments is None or _overrides(program, call):
            continue
        made = origin(program, arguments.module, arguments.node)
        if not isinstance(made.node, ast.Call) or not is_subclass(
            program, program.dotted(made.module, made.node.func), *ARGUMENTS
        ):
            continue
        keeps = resolved_argument(
            program, Call(made.module, made.node, ""), "remove_unused_columns"
        )
        if has_unknown_arguments(program, Call(made.module, made.node, "")) or (
            keeps is not None and program.value(keeps.module, keeps.node) is not True
        ):
            continue
        keys = _keys(program, collator)
        if keys is None or not keys - FORWARD:
            continue
        shown = ", ".join(sorted(keys - FORWARD)[:3])
        edits = (
            (add_keyword(made.module, made.node, "remove_unused_columns=False"),)
            if keeps is None and not made.module.is_notebook
            else None
        )
        message = (
            f"The collator reads {shown}, which the Trainer removes from the samples unless"
            " remove_unused_columns is False."
        )
        yield RULE.finding(made.module, made.node, message, edits=edits)


def _overrides(program: Program, call: Call) -> bool:
    cls = program.class_named(program.dotted(call.module, call.node.func))
    return cls is not None and any(
        name in cls.methods
        for name in (
            "_remove_unused_columns",
            "get_train_dataloader",
            "_set_signature_columns_if_needed",
        )
    )


def _keys(program: Program, place: Expression) -> set[str] | None:
    """The sample keys that a project's collator reads; None where that is unknown."""
    behind = origin(program, place.module, place.node)
    node: ast.AST = behind.node
    module = behind.module
    if isinstance(node, ast.Lambda):
        return _read_in(node)
    if (
        isinstance(node, ast.Call)
        and program.dotted(module, node.func) == "functools.partial"
        and node.args
    ):
        return _keys(program, Expression(module, node.args[0]))
    function: Function | None
    cls = class_of_object(program, behind)
    function = (
        program.names.method(cls, "__call__")
        if cls is not None
        else program.function(program.dotted(module, place.node))
    )
    return _read_in(function.node) if function is not None else None


def _read_in(node: ast.AST) -> set[str]:
    """String keys that are read from elements: `row["image"] for row in rows`."""
    rows = {
        entry.target.id
        for entry in ast.walk(node)
        if isinstance(entry, ast.comprehension | ast.For) and isinstance(entry.target, ast.Name)
    }
    found = set()
    for item in ast.walk(node):
        match item:
            case ast.Subscript(
                value=ast.Name(id=row), slice=ast.Constant(value=str(key)), ctx=ast.Load()
            ) if row in rows:
                found.add(key)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=row), attr="pop"),
                args=[ast.Constant(value=str(key))],
            ) if row in rows:
                found.add(key)
    return found
