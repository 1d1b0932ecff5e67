"""A diagnosis as `trainprobe.report/1`: the type that `--json` writes, and its text."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from trainprobe import __version__
from trainprobe.model.codec import from_json, to_json
from trainprobe.model.diagnosis import REPORT_SCHEMA, Diagnosis, Report, Tool

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import LadderRow


def report_of(
    diagnosis: Diagnosis,
    *,
    command: str,
    case: str,
    looked_s: float = 0.0,
    tool: Tool | None = None,
) -> Report:
    """Return the report of `diagnosis`.

    `command` is the one that gathered and `case` the folder as it was named then, so that a case
    judged again gives the same report;
    `tool` is the one that gathered, or this one. `looked_s` is how long gathering took, in seconds.
    """
    return Report(
        schema=REPORT_SCHEMA,
        tool=tool or Tool("trainprobe", __version__),
        command=command,
        case=case,
        verdict=diagnosis.verdict,
        conclusive=diagnosis.conclusive,
        says=diagnosis.says,
        world=diagnosis.world,
        suspects=diagnosis.suspects,
        causes=diagnosis.causes,
        cascade=diagnosis.cascade,
        unexplained=diagnosis.unexplained,
        ruled_out=diagnosis.ruled_out,
        undecided=diagnosis.undecided,
        ladder=tuple(_finite(row) for row in diagnosis.ladder),
        stacks=diagnosis.stacks,
        looked_s=looked_s,
        warnings=diagnosis.warnings,
        expiry=diagnosis.expiry,
        killing=diagnosis.killing,
        advice=diagnosis.advice,
        predictions=diagnosis.predictions,
        climb=diagnosis.climb,
        extra=diagnosis.extra,
    )


def report_text(report: Report) -> str:
    """Return `report` as JSON text, indented, pure ASCII, with a final newline."""
    return json.dumps(to_json(report), indent=2, allow_nan=False) + "\n"


def read_report(text: str) -> Report:
    """Return the report that `report_text` wrote. Raises ValueError where `text` is not one."""
    return from_json(Report, json.loads(text))


def _finite(row: LadderRow) -> LadderRow:
    """JSON knows no infinity: a probe that measured one has no number to show."""
    measures = tuple(measure for measure in row.measures if math.isfinite(measure.value))
    return row if len(measures) == len(row.measures) else replace(row, measures=measures)
