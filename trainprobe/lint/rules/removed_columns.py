"""transformers' Trainer with a collator of one's own, and remove_unused_columns left at its default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.fixing import add_keyword
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Call, Place, calls_of, class_of_object, given, is_kind, is_open, origin

ID = "removed-columns"
CAUSE = "trainer-removed-columns"
WHY = "The Trainer drops all columns that the model's forward() does not take, before the collator sees them: its samples come without these keys, or empty."
TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
FORWARD = {
    "input_ids", "attention_mask", "labels", "label", "label_ids", "token_type_ids", "position_ids", "pixel_values", "pixel_mask", "input_features", "input_values",
    "decoder_input_ids", "decoder_attention_mask", "inputs_embeds", "bbox", "start_positions", "end_positions", "length", "special_tokens_mask",
}  # fmt: skip
FIX = Fix("Give TrainingArguments remove_unused_columns=False.")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_of(program, *TRAINERS):
        collator = given(program, call.module, call.node, "data_collator", 2)
        arguments = given(program, call.module, call.node, "args", 1)
        if collator is None or arguments is None or _overrides(program, call):
            continue
        made = origin(program, arguments.module, arguments.node)
        if not isinstance(made.node, ast.Call) or not is_kind(program, program.dotted(made.module, made.node.func), *ARGUMENTS):
            continue
        keeps = given(program, made.module, made.node, "remove_unused_columns")
        if is_open(program, made.module, made.node) or (keeps is not None and program.value(keeps.module, keeps.node) is not True):
            continue
        keys = _keys(program, collator)
        if keys is None or not keys - FORWARD:
            continue
        shown = ", ".join(sorted(keys - FORWARD)[:3])
        added = () if keeps is not None or made.module.is_notebook else (add_keyword(made.module, made.node, "remove_unused_columns=False"),)
        fix = Fix(FIX.says, added, safe=bool(added))
        says = f"The collator reads {shown}, which the Trainer takes out of the samples unless remove_unused_columns is False."
        yield program.finding(ID, CAUSE, made.module, made.node, says=says, why=WHY, confidence=0.75, fix=fix)


def _overrides(program: Program, call: Call) -> bool:
    cls = program.class_named(program.dotted(call.module, call.node.func))
    return cls is not None and any(name in cls.methods for name in ("_remove_unused_columns", "get_train_dataloader", "_set_signature_columns_if_needed"))


def _keys(program: Program, place: Place) -> set[str] | None:
    """The keys that a collator of the project reads from its samples; None where it is not the project's, or nothing can be said."""
    behind = origin(program, place.module, place.node)
    node: ast.AST = behind.node
    module = behind.module
    if isinstance(node, ast.Lambda):
        return _read_in(node)
    if isinstance(node, ast.Call) and program.dotted(module, node.func) == "functools.partial" and node.args:
        return _keys(program, Place(module, node.args[0]))
    function: Function | None
    cls = class_of_object(program, behind)
    function = program.names.method(cls, "__call__") if cls is not None else program.function(program.dotted(module, place.node))
    return _read_in(function.node) if function is not None else None


def _read_in(node: ast.AST) -> set[str]:
    """String keys that are read from the elements of what is iterated: `row["image"] for row in rows`."""
    rows = {one.target.id for one in ast.walk(node) if isinstance(one, ast.comprehension | ast.For) and isinstance(one.target, ast.Name)}
    found = set()
    for one in ast.walk(node):
        reads = isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and one.value.id in rows and isinstance(one.ctx, ast.Load)
        if isinstance(one, ast.Subscript) and reads and isinstance(one.slice, ast.Constant) and isinstance(one.slice.value, str):
            found.add(one.slice.value)
        takes = isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in {"pop", "get"} and len(one.args) == 1
        if isinstance(one, ast.Call) and takes and isinstance(one.func, ast.Attribute) and isinstance(one.func.value, ast.Name) and one.func.value.id in rows:
            key = one.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and one.func.attr == "pop":
                found.add(key.value)
    return found


RULE = Rule(ID, CAUSE, "Columns that the collator needs", WHY, 0.75, find)
