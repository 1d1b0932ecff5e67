"""The JSON Schema of `trainprobe.report/1`, made from the dataclasses themselves, so that the
two cannot drift apart.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import Any

from trainprobe.model.diagnosis import REPORT_SCHEMA, Report, TimelineAttempt

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def report_schema() -> dict[str, Any]:
    """Return the schema as plain data. Unknown fields are allowed everywhere: a newer version
    may add some.
    """
    shapes: dict[str, Any] = {}
    _dataclass(Report, shapes)
    top = shapes.pop(Report.__name__)
    top["properties"]["schema"] = {"const": REPORT_SCHEMA}
    # Only reports on logs have it, so it is not required: one entry per attempt, the last attempt
    # first.
    top["properties"]["timeline"] = _shape(tuple[TimelineAttempt, ...], shapes)
    return {
        "$schema": DIALECT,
        "title": REPORT_SCHEMA,
        **top,
        "$defs": dict(sorted(shapes.items())),
    }


def schema_text() -> str:
    """Return the schema as it is published in docs/report.schema.json."""
    return json.dumps(report_schema(), indent=2) + "\n"


def shapes_of(kind: type) -> list[type]:
    """Return the dataclass `kind` and every dataclass that it is built of, in the order of their
    fields.
    """
    found: dict[type, None] = {}

    def visit(one: Any) -> None:
        if dataclasses.is_dataclass(one) and isinstance(one, type) and one not in found:
            found[one] = None
            for hint in typing.get_type_hints(one).values():
                visit(hint)
        for part in typing.get_args(one):
            visit(part)

    visit(kind)
    return list(found)


def kind_in_words(hint: Any) -> str:
    """Return a field's type for the page: `list of string`, `one of a, b`, `number or null`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{word}`" for word in args)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if part is type(None) else kind_in_words(part) for part in args)
    if origin is tuple:
        return f"list of {kind_in_words(args[0])}"
    if dataclasses.is_dataclass(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"  # type: ignore[union-attr] # an instance cannot be an annotation
    return SCALARS.get(
        hint, "object" if origin is not None and issubclass(origin, Mapping) else "any"
    )


def docstring_of(kind: type) -> str:
    """Return the docstring that stands in the source; the one that `dataclass` makes up does not
    count.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    return (ast.get_docstring(tree) or "") if isinstance(tree, ast.ClassDef) else ""


def _dataclass(kind: type, shapes: dict[str, Any]) -> None:
    if kind.__name__ in shapes:
        return
    shape: dict[str, Any] = {}
    shapes[kind.__name__] = shape
    hints = typing.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if field.name != "extra"]
    says = docstring_of(kind)
    if says:
        shape["description"] = " ".join(says.split())
    shape["type"] = "object"
    shape["properties"] = {field.name: _shape(hints[field.name], shapes) for field in fields}
    # The writer leaves nothing out, so everything is required of a report.
    shape["required"] = [field.name for field in fields]


def _shape(hint: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        parts = [{"type": "null"} if part is type(None) else _shape(part, shapes) for part in args]
        return {"anyOf": parts}
    if origin is tuple:
        return {"type": "array", "items": _shape(args[0], shapes)}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        _dataclass(hint, shapes)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    return {"type": "object"}
