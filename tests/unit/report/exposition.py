"""A strict reader of Prometheus' text format 0.0.4, with what `promtool check metrics` and
node_exporter's textfile collector refuse.
"""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\n|\\")*)"')
SAMPLE = re.compile(rf"({NAME.pattern})(?:\{{(.*)\}})? (\S+)")
UNITS = (
    "_s",
    "_ms",
    "_us",
    "_minutes",
    "_hours",
    "_days",
    "_kb",
    "_mb",
    "_gb",
    "_percent",
    "_milliseconds",
)
OF_OTHER_TYPES = ("_total", "_count", "_sum", "_bucket")
Sample = tuple[str, frozenset[tuple[str, str]]]


def read(text: str) -> dict[Sample, float]:
    """Return {(name, labels): value}. Raises AssertionError with the line that is wrong."""
    assert text.endswith("\n")
    found: dict[Sample, float] = {}
    said: dict[str, list[str]] = {}
    current = ""
    for line in text.split("\n")[:-1]:
        if line.startswith("# "):
            kind, name, rest = line[2:].split(" ", 2)
            assert kind in ("HELP", "TYPE"), line
            assert NAME.fullmatch(name), line
            assert rest.strip(), line
            assert kind not in said.setdefault(name, []), f"a second {kind}: {line}"
            assert kind == "HELP" or rest == "gauge", line
            said[name].append(kind)
            current = name
            continue
        matched = SAMPLE.fullmatch(line)
        assert matched, line
        name, inside, value = matched.group(1), matched.group(2) or "", matched.group(3)
        assert name == current, f"not in the group of its name: {line}"
        assert said[name] == ["HELP", "TYPE"], line
        assert not name.endswith((*UNITS, *OF_OTHER_TYPES)), name
        labels = _labels(inside, line)
        assert (name, labels) not in found, f"twice: {line}"
        found[name, labels] = float(value)
    assert {name for name, _ in found} == set(said), "a name without a sample"
    return found


def of(samples: dict[Sample, float], name: str) -> dict[tuple[str, ...], float]:
    """Return the samples of one name by their labels' values, sorted by label."""
    return {
        tuple(value for _, value in sorted(labels)): number
        for (one, labels), number in samples.items()
        if one == name
    }


def _labels(inside: str, line: str) -> frozenset[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(inside):
        matched = LABEL.match(inside, at)
        assert matched, line
        pairs.append(
            (
                matched.group(1),
                re.sub(
                    r"\\(.)",
                    lambda one: {"n": "\n"}.get(one.group(1), one.group(1)),
                    matched.group(2),
                ),
            )
        )
        at = matched.end()
        if at < len(inside):
            assert inside[at] == ",", line
            at += 1
    assert len({name for name, _ in pairs}) == len(pairs), line
    assert not {name for name, _ in pairs} & {"le", "quantile", "__name__"}, line
    return frozenset(pairs)
