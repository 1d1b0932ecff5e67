"""How each cell of the ladder came out, in the ladder's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model import fields
from trainprobe.model.diagnosis import Measure
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Rung(Fact):
    """One cell. `ranks` are those that did not pass; `unmet` says why it was skipped (gpu, script,
    lower-rung:<probe> …).

    `rows` is how much data the user's command was given, None where that is not ours to set. `knob`
    (`workers=0`) is what was changed in it, and `of_cell` the failing cell that it was changed
    from; both empty for the command as it was given. `began` is Unix time in seconds, and
    `resumed` counts how often the climb had been taken up again by then. `outgrown`: it computed in
    silence for longer than smaller cells let expect.
    `hosts` are those that its ranks went over, in the order of the ranks, empty for one machine.
    """

    rung: int = 0
    probe: str = ""
    question: str = ""
    nproc: int = 0
    outcome: str = "not_measured"
    took_s: float = 0.0
    deadline_s: float = 0.0
    says: str = ""
    ranks: tuple[int, ...] = ()
    unmet: str = ""
    skipped_because: str = ""
    stopped_because: str = ""
    elapsed_s: float | None = None
    silent_s: float | None = None
    measures: tuple[Measure, ...] = ()
    rows: int | None = None
    knob: str = ""
    of_cell: str = ""
    began: float | None = None
    resumed: int = 0
    outgrown: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it ran on one of several hosts for that host alone, as every other host had it
        too: `host@node3`.
        """
        return len(self.hosts) == 1 and self.cell.partition("@")[2] == self.hosts[0]

    def host_of(self, rank: int) -> str:
        """The host of a rank, where the ranks went over several; empty where that is not known."""
        ranks_each = (
            self.nproc // len(self.hosts) if self.hosts and self.nproc >= len(self.hosts) else 0
        )
        return (
            self.hosts[rank // ranks_each]
            if ranks_each and 0 <= rank < ranks_each * len(self.hosts)
            else ""
        )


def parse_rung(record: Evidence) -> list[Fact]:
    data = record.data
    probe = fields.text(data, "probe")
    if not probe:
        raise fields.UnreadableError("a rung without a probe")
    return [
        Rung(
            evidence=(record.id,),
            cell=record.cell or fields.text(data, "cell"),
            rung=fields.whole(data, "rung") or 0,
            probe=probe,
            question=fields.text(data, "question"),
            nproc=fields.whole(data, "nproc") or 0,
            outcome=fields.text(data, "outcome") or "not_measured",
            took_s=fields.number(data, "took_s") or 0.0,
            deadline_s=fields.number(data, "deadline_s") or 0.0,
            says=fields.text(data, "says"),
            ranks=fields.wholes(data, "ranks"),
            unmet=fields.text(data, "unmet"),
            skipped_because=fields.text(data, "skipped_because"),
            stopped_because=fields.text(data, "stopped_because"),
            elapsed_s=fields.number(data, "elapsed_s"),
            silent_s=fields.number(data, "silent_s"),
            rows=fields.whole(data, "rows"),
            knob=fields.text(data, "knob"),
            of_cell=fields.text(data, "of_cell"),
            began=record.began or None,
            resumed=fields.whole(data, "resumed") or 0,
            hosts=fields.texts(data, "hosts"),
            outgrown=data.get("outgrown") is True,
            measures=tuple(fields.each(fields.items(data, "measures"), _measure)),
        )
    ]


def _measure(row: Mapping[str, Any]) -> Measure:
    value = fields.number(row, "value")
    if value is None:
        raise fields.UnreadableError("a measure without a value")
    known = {"name", "value", "unit", "threshold", "source", "who"}
    rest = {str(key): fields.plain(item) for key, item in row.items() if key not in known}
    words = [fields.text(row, name) for name in ("name", "unit", "source", "who")]
    return Measure(
        words[0], value, words[1], fields.number(row, "threshold"), words[2], words[3], rest
    )
