"""Reports on failures and waits of which no wording is known: the component, and no residual cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import PlacedCause, Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

FRAMES = [
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 88, in <module>',
    "    main()",
    '  File "/job/train.py", line 40, in main',
    "    step(model)",
]


def judged(lines: list[str], folder: Path) -> Report:
    path = folder / "a.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return explain(ExplainRequest(paths=(str(path),), argv=("trainprobe", "explain")))


def held(cause: PlacedCause) -> list[str]:
    return [one.id for one in cause.classes]


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("RuntimeError: CUDA error: something quite new", "in-cuda"),
        ("RuntimeError: NCCL communicator in a state that is quite new", "in-nccl"),
        ("OSError: [Errno 116] Stale file handle, in a way that is new", "in-storage"),
    ],
)
def test_what_another_component_raised_is_no_exception_of_the_program(
    line: str, component: str, tmp_path: Path
) -> None:
    first = judged([*FRAMES, line], tmp_path).causes[0]

    assert not (first.id in ("user-exception", "import-failure") and first.named)
    if first.id == "unknown":
        assert held(first)[-1] == component


def test_a_raise_of_the_program_is_its_own_whatever_it_speaks_of(tmp_path: Path) -> None:
    own = [*FRAMES[:-1], '    raise RuntimeError("the NCCL tests of our own did not pass")']

    report = judged([*own, "RuntimeError: the NCCL tests of our own did not pass"], tmp_path)

    assert (report.causes[0].id, report.causes[0].named) == ("user-exception", True)


def test_a_bare_exception_without_a_line_of_the_program_is_less_sure(tmp_path: Path) -> None:
    bare = judged(["RuntimeError: novel words of an unknown part"], tmp_path).causes[0]
    shown = judged([*FRAMES, "RuntimeError: novel words of an unknown part"], tmp_path).causes[0]

    assert bare.confidence < 0.8 < shown.confidence
    assert shown.id == "user-exception"


def test_the_store_that_gave_up_is_named_with_what_to_think_of(tmp_path: Path) -> None:
    first, *others = judged([*FRAMES, "RuntimeError: Socket Timeout"], tmp_path).causes

    assert first.title == "The trouble shows in the TCP store of c10d"
    assert first.summary.startswith("The TCP store of c10d gave up waiting")
    assert "rendezvous-incomplete" in {cause.id for cause in others}


def test_ctrl_c_is_no_failure_of_the_line_that_it_hit(tmp_path: Path) -> None:
    importing = [
        *FRAMES[:2],
        "    import torch",
        '  File "/env/lib/python3.11/site-packages/torch/__init__.py", line 14, in <module>',
        "    from torch.functional import *",
        "KeyboardInterrupt",
    ]

    report = judged(importing, tmp_path)

    assert not any(cause.named for cause in report.causes)
    assert report.causes[0].title == "Somebody ended it by hand"
    assert not {"import-failure", "user-exception"} & {cause.id for cause in report.causes}


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("[rank2]:[E903 TCPStore.cpp:346] [c10d] something new on key 0//w", "in-c10d-store"),
        ("RendezvousNovelty: the rendezvous failed in a way that is new", "in-rendezvous"),
    ],
)
def test_a_log_that_ends_with_a_line_that_nobody_knows(
    line: str, component: str, tmp_path: Path
) -> None:
    report = judged(["step 10 loss 1.2", "step 20 loss 1.1", line], tmp_path)

    assert report.verdict == "undetermined"
    assert held(report.causes[0])[-1] == component


@pytest.mark.parametrize(
    "line",
    [
        "step 30 loss 1.0",
        "WARNING: the tokenizer failed to find a fast version, NCCL is fine",
        "[rank2]:[W903 TCPStore.cpp:346] [c10d] failed to connect, retrying",
        "INFO: 3 files could not be read from the cache and are loaded again",
    ],
)
def test_a_log_that_goes_on_or_only_warns_blames_nobody(line: str, tmp_path: Path) -> None:
    assert judged(["step 10 loss 1.2", "step 20 loss 1.1", line], tmp_path).causes == ()


def test_a_log_that_ends_within_a_traceback_tells_the_component_of_its_frames(
    tmp_path: Path,
) -> None:
    frame = (
        '  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 9, in a'
    )

    report = judged(["step 10 loss 1.2", *FRAMES, frame], tmp_path)

    assert held(report.causes[0])[-1] == "in-loader"


def test_a_version_conflict_names_the_pair(tmp_path: Path) -> None:
    lines = [
        *FRAMES[:2],
        "    import pack",
        '  File "/env/lib/python3.11/site-packages/pack/core.py", line 9, in <module>',
        "    check()",
        (
            "ImportError: tokenizers>=0.14,<0.19 is required for a normal functioning of this"
            " module, but found tokenizers==0.20.1."
        ),
    ]

    first = judged(lines, tmp_path).causes[0]

    assert first.id == "library-version-conflict"
    assert first.summary.startswith("pack needs tokenizers>=0.14,<0.19 and finds tokenizers 0.20.1")
    assert "in-software" in held(first)


def test_a_frame_by_itself_tells_no_component(tmp_path: Path) -> None:
    lines = ['ERROR File "/env/site-packages/serve/core.py", line 6, in collective_rpc', "    go()"]
    report = judged(lines, tmp_path)
    assert not report.causes, report.says


def test_a_store_that_was_reset_makes_think_of_its_peer(tmp_path: Path) -> None:
    line = (
        "[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and"
        " retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0')"
        " got error: Connection reset by peer"
    )
    said = [cause.id for cause in judged([line], tmp_path).causes]
    assert said[0] == "unknown"
    assert {"rank-exited-early", "rank-killed"} <= set(said)
