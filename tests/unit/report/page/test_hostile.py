"""Whatever a name, a path, a log line or a stack frame holds is shown as text."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.page.dom import Page
from tests.unit.report.page.pages import exhibits, judged, large
from trainprobe.model.diagnosis import Climb, ClimbCell, Notice, Report, RuledOut, Undecided
from trainprobe.model.predictions import Prediction
from trainprobe.report.page.document import findings_page, page_of
from trainprobe.report.page.exhibits import exhibits_of
from trainprobe.report.page.markup import Markup, data_island, element, text_of

BAIT = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`--><!--]]></style>"
    "\x1b[31m\u202emoc.live\u2066\x00\r\n\x9b&lt;{{7*7}}javascript:alert(3)\ud800\u2028"
)
INVISIBLE = [*map(chr, range(9)), *map(chr, range(14, 32)), "\x7f", "\x9b"]
INVISIBLE += [
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
    "\u2028",
    "\ud800",
]


type_hints = functools.cache(typing.get_type_hints)


def poisoned(value: Any, bait: str, kind: Any = str) -> Any:
    """`value` with `bait` in every string, but where a type allows a few words only."""
    if isinstance(value, str):
        if typing.get_origin(kind) is typing.Literal:
            return value
        return f"{value}{bait}" if len(bait) < 1000 else bait  # thousands share a long one
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = type_hints(type(value))
        return replace(
            value,
            **{
                one.name: poisoned(getattr(value, one.name), bait, hints[one.name])
                for one in dataclasses.fields(value)
                if one.name != "axis"
                and not (one.name == "ranks" and isinstance(getattr(value, one.name), str))
            },
        )
    if isinstance(value, dict):
        return {
            key: item if key in ("state", "severity", "verdict", "rows") else poisoned(item, bait)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        inner = next((part for part in typing.get_args(kind) if part is not Ellipsis), str)
        made = [poisoned(item, bait, inner) for item in value]
        return tuple(made) if isinstance(value, tuple) else made
    return value


def whole() -> Report:
    """A report with something in every part of the page."""
    climbed, _ = judged("climb-lock-in-worker")
    logged, _ = judged("explain-log-restarts")
    cell = ClimbCell("user_script@2", 2, 10, "workers=0", "failed", 3.0, applied=None, says="no")
    prediction = Prediction(
        "pss", "bytes", "rows", "linear", {"rows": 1000}, 9e9, 8e9, 1e10, 6e9, "MemTotal", 0.9,
        will_hit=True, points=((10, 1e9), (100, 2e9)), curve=((10, 1e9, 9e8, 2e9), (1000, 9e9, 8e9, 1e10)),
        says="memory passes the limit", basis="measured",
    )  # fmt: skip
    return replace(
        large(12, each=4, stuck=5),
        ladder=climbed.ladder,
        climb=replace(climbed.climb or Climb(), cells=(*(climbed.climb or Climb()).cells, cell)),
        predictions=(prediction, replace(prediction, value=None, says="fds: too few sizes")),
        ruled_out=(RuledOut("gil-held", "no"),),
        undecided=(
            Undecided("gil-held", "trainprobe attach --deep: it tells"),
            Undecided("cannot-look", "denied"),
        ),
        unexplained=("one record",),
        warnings=(Notice("host", "few files", "ulimit -n 4096"),),
        extra={
            **large(12, stuck=5).extra,
            "timeline": logged.extra["timeline"],
            "reach": "attach --hosts n1",
            "against": {
                "since": "./before",
                "verdict": "healthy",
                "sentences": ["NCCL_DEBUG was not set and is INFO now."],
                "rows": [
                    {
                        "part": "answer",
                        "name": "verdict",
                        "before": "healthy",
                        "after": "hung",
                        "changed": True,
                    },
                    {
                        "part": "environment",
                        "name": "NCCL_DEBUG",
                        "before": "not set",
                        "after": "INFO",
                        "changed": True,
                    },
                    {
                        "part": "versions",
                        "name": "torch",
                        "before": "2.4",
                        "after": "2.4",
                        "changed": False,
                    },
                ],
            },
        },
    )


def test_hostile_strings_in_every_field_are_text() -> None:
    records = judged("conditional-collective")[1]
    bad = poisoned(whole(), BAIT)
    shown = exhibits_of(bad, [poisoned(record, BAIT) for record in records])
    text = page_of(bad, shown)
    text.encode("utf-8")
    found = Page(text)
    good = Page(page_of(whole(), exhibits("conditional-collective")))
    assert not [sign for sign in INVISIBLE if sign in text]
    assert {one.tag for one in found.root} <= {one.tag for one in good.root}
    assert len(found.root.all("script")) == len(good.root.all("script"))
    assert "<img src=x onerror=alert(2)>" in found["answer"].text
    assert "<img" not in text
    for one in found.root.all("script"):
        if "type" in one.attributes:
            json.loads(one.text)
            assert "<" not in one.text
    for section in (
        "answer",
        "against",
        "ranks",
        "stacks",
        "climb",
        "ladder",
        "logs",
        "also",
        "scaling",
        "evidence",
    ):
        assert "</script><script>alert(1)</script>" in found[section].text, section


def test_long_strings_are_cut_and_say_so() -> None:
    text = page_of(poisoned(whole(), "A " * 2**19))
    assert len(text) < 1_500_000
    assert "… (1,048," in text
    records = [poisoned(record, "B" * 2**20) for record in judged("rank-stuck")[1]]
    shown = exhibits_of(judged("rank-stuck")[0], records)
    assert len(page_of(judged("rank-stuck")[0], shown)) < 1_500_000


def test_what_lint_found_is_text() -> None:
    from trainprobe.lint.model import Finding, NotRead
    from trainprobe.lint.output import LintResult, ReadStats

    finding = Finding("a", "b", f"x{BAIT}.py", 7, 5, BAIT, BAIT, 0.9)
    result = LintResult([finding], ReadStats(1, 8, 0.1), [NotRead(BAIT, BAIT)])
    assert "<img src=x" in Page(findings_page(result))["findings"].text


def test_markup_is_made_in_one_place() -> None:
    assert text_of("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert element("p", Markup("<b>x</b>"), "<i>", None, 3, [" y"]) == "<p><b>x</b>&lt;i&gt;3 y</p>"
    assert element("p", title='"><script>', hidden=True, lang=None) == (
        '<p title="&quot;&gt;&lt;script&gt;" hidden></p>'
    )
    assert "</script>" not in data_island("x", "</script>").removesuffix("</script>")
    for attributes in ({"href": "https://x"}, {"onclick": "x"}, {"style": "x"}, {"src": "#x"[1:]}):
        with pytest.raises(ValueError, match="page"):
            element("a", **attributes)


def test_secrets_of_a_case_stay_out_of_the_page() -> None:
    """The records are shown as the case keeps them, which is redacted."""
    report, records = judged("conditional-collective")
    for one in exhibits_of(report, records).raw:
        kept = next(record for record in records if record.id == one.id)
        assert one.kind == kept.kind
        assert set(one.data) - {"…"} <= set(kept.data)
