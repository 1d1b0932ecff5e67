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
LEAST_CHARACTERS = 24
CUTS = 4  # of each example
MOST_PREFIXES = 2
SYSTEM = "network"  # what the system says of a connection is of whoever used it


def _told(text: str, **more: object) -> str:
    told = read_component(text, **more)  # type: ignore[arg-type] # keywords of the tests below
    return told.component.id if told is not None else ""


def _lines() -> list[Signature]:
    """Wordings of failures and waits: what frameworks print as they go on is left out."""
    known = [one for one in all_signatures() if one.example]
    return [one for one in known if component_of_signature(one).id != "framework"]


def _truth(one: Signature) -> str:
    name = component_of_signature(one).id
    return _told(one.example) if name == SYSTEM else name


def _cuts(least_left: float) -> Iterator[tuple[Signature, str]]:
    """Pieces of each example, with at least this part of its characters, from any place in it, and
    behind any prefixes in any order.
    """
    for one in _lines():
        draw = random.Random(f"{one.id} {least_left}")
        text = one.example.strip()
        for _ in range(CUTS):
            left = max(LEAST_CHARACTERS, int(len(text) * draw.uniform(least_left, 1)))
            begins = draw.randint(0, max(0, len(text) - left))
            prefixes = draw.sample(PREFIXES, draw.randint(0, MOST_PREFIXES))
            yield one, "".join(prefixes) + text[begins : begins + left]


def test_every_signature_belongs_to_a_component() -> None:
    assert [one.id for one in all_signatures() if not component_of_signature(one).named] == []


def test_a_whole_line_is_of_the_component_of_its_wording() -> None:
    wrong = [one.id for one in _lines() if _told(one.example) != component_of_signature(one).id]
    assert len(wrong) <= 0.015 * len(_lines()), wrong


@pytest.mark.parametrize(("least_left", "right"), [(0.6, 0.95), (0.4, 0.91)])
def test_a_line_that_was_cut_anywhere_is_of_the_component_of_its_wording(
    least_left: float, right: float
) -> None:
    truth = {one.id: _truth(one) for one in _lines()}
    told = [(one.id, text, _told(text)) for one, text in _cuts(least_left)]
    wrong = [row for row in told if row[2] != truth[row[0]]]
    assert len(wrong) <= (1 - right) * len(told), (len(wrong), len(told), wrong)


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


def test_a_path_that_is_not_there_is_the_programs_whoever_opens_it() -> None:
    opened = ["/env/lib/python3.11/site-packages/torch/serialization.py _open_file"]
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '/job/last.pt'"
    full = "OSError: [Errno 28] No space left on device"

    assert _component(missing, opened, "FileNotFoundError") == "user"
    assert _component(full, opened, "OSError") == "storage"


def _component(text: str, frames: list[str], type_name: str) -> str:
    found = read_component(text, frames, type_name)
    return found.component.id if found is not None else ""
