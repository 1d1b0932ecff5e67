"""What logs, environment dumps and the command line say of the surroundings, as named values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.settings import Given
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

_NUMBER = re.compile(r"\s*([-+]?\d{1,18}(?:\.\d{1,9})?)\s*([kKMGT]?)(i?)[bB]?\s*$")
_UNITS = {"": 1, "k": 1024, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
VALUE_CAP = 1000


def parse_given(record: Evidence) -> list[Fact]:
    """Data: {name: value}, with `source` among them or in the record."""
    source = fields.text(record.data, "source") or record.source or "given"
    values = (
        record.data.get("values") if isinstance(record.data.get("values"), Mapping) else record.data
    )
    found: list[Fact] = []
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if (
            name in ("source", "path", "values", "host")
            or isinstance(value, (Mapping, list, tuple))
            or value is None
        ):
            continue
        found.append(
            given(
                record.id,
                str(name),
                str(value),
                source,
                cell="",
                host=fields.text(record.data, "host"),
            )
        )
    return found


def given(
    evidence: str, name: str, value: str, source: str, *, cell: str = "", host: str = ""
) -> Given:
    """One value, with its number where it is one; a size with a unit counts in the unit that the
    name ends in.
    """
    return Given(
        evidence=(evidence,) if evidence else (),
        cell=cell,
        name=name[:200],
        value=value[:VALUE_CAP],
        number=number_of(name, value),
        source=source,
        host=host,
    )


def number_of(name: str, value: str) -> float | None:
    """The value as a number, None where it is none. `unlimited` is infinity for a limit."""
    if name.startswith("limit.") and value.strip().lower() in ("unlimited", "infinity", "-1"):
        return float("inf")
    match = _NUMBER.match(value)
    if match is None or (match.group(2) and not name.endswith("_bytes")):
        return None
    return float(match.group(1)) * (_UNITS[match.group(2)] if name.endswith("_bytes") else 1)


def join_given(facts: list[Fact]) -> list[Fact]:
    """Lines of logs that tell a version, a setting or a limit (their event is `given`) become
    Given as well.
    """
    told: dict[tuple[str, str], Given] = {}
    for fact in facts:
        if isinstance(fact, LogEvent) and fact.event == "given":
            name = fact.captured.get("name") or _NAMES.get(fact.signature, "")
            pairs = (
                [(name, fact.captured.get("value", ""))]
                if name
                else [(key.replace("__", "."), value) for key, value in fact.captured.items()]
            )
            for key, value in pairs:
                if key and value:
                    told.setdefault(
                        (key, value),
                        given(
                            fact.evidence[0] if fact.evidence else "",
                            key,
                            value,
                            "log",
                            host=fact.host,
                        ),
                    )
    return [*facts, *told.values()]


# Wordings that capture only a `value`: the signature's id says what of, as `version-torch` →
# version.torch.
_NAMES: dict[str, str] = {}
