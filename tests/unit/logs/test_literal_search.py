"""The search without hyperscan finds what hyperscan finds."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe.logs import literal_search as engines
from trainprobe.logs.literal_search import LiteralSearch, signature_search
from trainprobe.pipelines import explain


@pytest.fixture
def without_hyperscan(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def forget() -> None:
        engines.is_fast.cache_clear()
        engines.signature_search.cache_clear()
        engines._reduced.cache_clear()

    monkeypatch.setitem(sys.modules, "hyperscan", None)  # import hyperscan raises ImportError
    forget()
    yield
    forget()


def _content(texts: tuple[bytes, ...]) -> bytes:
    draw = random.Random(3)
    parts = [
        (
            draw.choice(texts)
            if draw.random() < 0.5
            else bytes(draw.choices(b"abcdefg (:[\n\xff", k=draw.randint(0, 30)))
        )
        for _ in range(3000)
    ]
    return b"".join(part[: draw.randint(1, 40)] if draw.random() < 0.2 else part for part in parts)


@pytest.mark.usefixtures("without_hyperscan")
def test_both_engines_find_every_text_everywhere() -> None:
    slow = signature_search()
    texts = slow.texts
    content = _content(texts)
    expected = sorted(
        (at + len(text), number)
        for number, text in enumerate(texts)
        for at in _places(content, text)
    )
    assert len(expected) > 1000
    assert slow.hits(content) == expected
    some = frozenset(range(0, len(texts), 2))
    assert slow.without(some).hits(content) == [hit for hit in expected if hit[1] not in some]
    assert LiteralSearch(()).hits(content) == []


def test_hyperscan_finds_the_same() -> None:
    pytest.importorskip("hyperscan")
    fast = signature_search()
    content = _content(fast.texts)
    expected = engines._PlainSearch(fast.texts).hits(content)
    assert sorted(fast.hits(content)) == expected


def test_a_small_text_is_searched_before_any_engine_is_made() -> None:
    search = LiteralSearch(signature_search().texts)
    content = _content(search.texts)[: engines.FEW_BYTES // 2]
    expected = engines._PlainSearch(search.texts).hits(content)
    assert expected
    assert search.hits(content) == expected
    assert not {"_database", "_plain"} & set(vars(search))
    assert sorted(search.hits(content * 2)) == engines._PlainSearch(search.texts).hits(content * 2)
    assert "_database" in vars(search)


def test_texts_within_texts_are_all_found() -> None:
    search = engines._PlainSearch((b"aaaa", b"aaaaaaab", b"aab", b"aaaaaaa"))
    assert search.hits(b"aaaaaaab") == [(4, 0), (5, 0), (6, 0), (7, 0), (7, 3), (8, 1), (8, 2)]


@pytest.mark.usefixtures("without_hyperscan")
def test_logs_are_explained_without_hyperscan_and_the_report_says_so(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        'step 1 loss 0.1\n[rank1]: Traceback (most recent call last):\n[rank1]:   File "fit.py",'
        " line 3, in <module>\n[rank1]: KeyError: 1\n"
    )
    report = explain(str(log))
    assert report.causes[0].id == "user-exception"
    assert any("Hyperscan is not installed" in says for says in report.unexplained)


def _places(content: bytes, text: bytes) -> Iterator[int]:
    at = content.find(text)
    while at >= 0:
        yield at
        at = content.find(text, at + 1)
