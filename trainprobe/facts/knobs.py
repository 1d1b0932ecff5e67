"""One thing was changed in a failing cell of the user's command: what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

ANSWERS = frozenset({"passed", "failed", "timed_out", "crashed"})
CONTROL = "again"


@dataclass(frozen=True)
class KnobTried(Fact):
    """The cell `of_cell` once more with one knob changed, in the cell `cell`.

    `knob` is `workers=0`, `name` and `value` its parts. `outcome` is the outcome of that cell.
    `applied` says whether the knob took effect, None where nobody could tell; `says` is the
    sentence about that, or the reason why it was left out.
    """

    knob: str = ""
    name: str = ""
    value: str = ""
    of_cell: str = ""
    outcome: str = "not_measured"
    applied: bool | None = None
    took_s: float = 0.0
    says: str = ""

    @property
    def answered(self) -> bool:
        """Did the changed cell run, with the change in effect as far as anybody knows?"""
        return self.outcome in ANSWERS and self.applied is not False

    @property
    def heals(self) -> bool:
        return self.answered and self.outcome == "passed"


def parse_knob(record: Evidence) -> list[Fact]:
    """A `rung` record that names a knob; any other gives none."""
    data = record.data
    knob = fields.text(data, "knob")
    if not knob:
        return []
    name, _, value = knob.partition("=")
    return [
        KnobTried(
            evidence=(record.id,),
            cell=record.cell or fields.text(data, "cell"),
            knob=knob,
            name=name,
            value=value,
            of_cell=fields.text(data, "of_cell"),
            outcome=fields.text(data, "outcome") or "not_measured",
            applied=fields.flag(data, "applied"),
            took_s=fields.number(data, "took_s") or 0.0,
            says=fields.text(data, "skipped_because") or fields.text(data, "applied_says"),
        )
    ]
