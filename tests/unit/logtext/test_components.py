"""The component of a line: as its wording says, also where the line was cut or stands behind
prefixes; and what must not be taken for one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from trainprobe.logtext.components import (
    component_of_signature,
    components,
    event_kind,
    read_component,
)
from trainprobe.signatures import Signature, all_signatures

PREFIXES = (
    "",
    "[rank3]:",
    "node7:42:51 [3] ",
    "2031-02-03T04:05:06.123Z ",
    "(RayTrainWorker pid=42, ip=10.0.0.3) ",
    "trainer-1  | ",
    "run-worker-0 pytorch ",
    "[1,3]<stderr>:",
    "3: ",
    "[default3]:",
)
LEAST_LEFT = 0.6  # of a line's characters
LEAST_CHARACTERS = 24


def _told(text: str, **more: object) -> str:
    told = read_component(text, **more)  # type: ignore[arg-type] # keywords of the tests below
    return told.component.id if told is not None else ""


def _lines() -> list[Signature]:
    """Wordings of failures and waits: what frameworks print as they go on is left out."""
    known = [one for one in all_signatures() if one.example]
    return [one for one in known if component_of_signature(one).id != "framework"]


def _cuts() -> Iterator[tuple[Signature, str]]:
    """Each example twice: without its end or its beginning, and with neither; behind a prefix."""
    for one in _lines():
        draw = random.Random(one.id)
        text = one.example.strip()
        for way in range(2):
            left = max(LEAST_CHARACTERS, int(len(text) * draw.uniform(LEAST_LEFT, 1)))
            left = min(left, len(text))
            most = len(text) - left
            begins = draw.choice((0, most)) if way == 0 else draw.randint(0, most)
            yield one, draw.choice(PREFIXES) + text[begins : begins + left]


def test_every_signature_belongs_to_a_component() -> None:
    assert [one.id for one in all_signatures() if not component_of_signature(one).named] == []


def test_a_whole_line_is_of_the_component_of_its_wording() -> None:
    wrong = [one.id for one in _lines() if _told(one.example) != component_of_signature(one).id]
    assert len(wrong) <= 0.015 * len(_lines()), wrong


def test_a_line_that_was_cut_stays_with_its_component() -> None:
    whole = {one.id: _told(one.example) for one in _lines()}
    wrong = [(one.id, text, _told(text)) for one, text in _cuts() if _told(text) != whole[one.id]]
    assert len(wrong) <= 0.05 * 2 * len(whole), wrong


@pytest.mark.parametrize(
    ("text", "component", "kind"),
    [
        ("[E903 TCPStore.cpp:346] [c10d] something new on key 0", "c10d-store", "raised"),
        ("RuntimeError: Socket Timeout", "c10d-store", "waited"),
        ("misc/foo.cc:12 NCCL WARN something that nobody knows", "nccl", "raised"),
        ("RuntimeError: [gloo/transport/tcp/pair.cc:9] what is this", "gloo", "raised"),
        ("RuntimeError: CUDA error: something quite new", "cuda", "raised"),
        ("slurmstepd: error: something quite new", "scheduler", "raised"),
        ("RendezvousNovelError: no such thing", "rendezvous", "raised"),
        ("torch._inductor.exc.NovelError: cannot lower this", "compiler", "raised"),
        ("OSError: [Errno 116] Stale file handle", "storage", "raised"),
    ],
)
def test_a_wording_that_nobody_knows_has_its_component(
    text: str, component: str, kind: str
) -> None:
    assert (_told(text), event_kind(text)) == (component, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Worker 3 DIED", "died"),
        ("we studied skilled workers", "said"),
        ("socket.gaierror: name unknown", "raised"),
        ("HYDRA_FULL_ERROR=1", "said"),
        ("torchCheckFail(char const*)", "said"),
        ("Training FAILED", "raised"),
        ("an exception to the rule", "said"),
    ],
)
def test_a_kind_is_told_by_whole_words_in_any_case(text: str, kind: str) -> None:
    assert event_kind(text) == kind


def test_frames_tell_where_the_words_do_not() -> None:
    assert (
        _told("RuntimeError: novel", frames=["/env/torch/_inductor/lowering.py run"]) == "compiler"
    )
    assert (
        _told(
            "BrokenPipeError: [Errno 32] Broken pipe",
            frames=["/lib/multiprocessing/reduction.py dump"],
        )
        == "loader"
    )
    assert _told("BrokenPipeError: [Errno 32] Broken pipe") == "network"


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'CUDA'",
        "ValueError: the store has no such key",
        "TypeError: unsupported operand type(s) for +: 'Tensor' and 'NoneType'",
    ],
)
def test_what_the_programs_own_line_raises_is_the_programs(text: str) -> None:
    assert _told(text, type_name=text.partition(":")[0], own=True) == "user"
    assert _told(text, type_name="RuntimeError", own=True, raises=True) == "user"


def test_each_component_says_what_to_think_of_and_what_separates_it() -> None:
    for one in components():
        assert one.named, one.id
        assert len(one.causes) >= 3, one.id
        assert one.separates, one.id
