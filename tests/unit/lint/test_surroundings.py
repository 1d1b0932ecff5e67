"""What is known of the node and of installed versions changes what is found."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.lint.engine import findings_of
from trainprobe.lint.program import NodeInfo, Program, Source

MAP = (
    "import datasets\nd = datasets.load_dataset('x')\nm = f().cuda()\nd.{method}(lambda r:"
    " m(r), num_proc={number})\n"
)
LOADERS = """
    from torch.utils.data import DataLoader
    import torch.multiprocessing as mp

    def work(rank):
        train = DataLoader([], num_workers=8, persistent_workers=True, pin_memory=True)
        held_out = DataLoader([], num_workers=6, persistent_workers=True, pin_memory=True)

    if __name__ == "__main__":
        mp.spawn(work, nprocs=4)
"""


def told(source: str, around: NodeInfo) -> list[tuple[str, int, float]]:
    return [
        (one.id, one.line, one.confidence)
        for one in findings_of(
            Program([Source("t.py", textwrap.dedent(source), "t")], around=around)
        )[0]
    ]


@pytest.mark.parametrize("method", ["map", "filter"])
@pytest.mark.parametrize(
    ("version", "number", "sure"),
    [
        ("4.0.0", 1, None),
        ("4.1.0", 1, 0.7),
        ("5.2.0", 1, 0.7),
        ("3.6.0", 1, None),
        ("3.6.0", 2, 0.7),
        ("", 1, 0.55),
        ("5.2.0", 0, None),
        ("", 3, 0.7),
    ],
)
def test_the_installed_version_says_whether_one_process_forks(
    method: str, version: str, number: int, sure: float | None
) -> None:
    around = NodeInfo({"datasets": version} if version else {})
    expected = [] if sure is None else [("cuda-in-forked-worker", 4, sure)]
    assert told(MAP.format(method=method, number=number), around) == expected


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        (NodeInfo(), []),
        (NodeInfo(cpus=64), []),
        (
            NodeInfo(cpus=16),
            [("cpu-oversubscribed", 6, 0.7)],
        ),  # 4 ranks with 8 workers in the one loader
        (NodeInfo(cpus=16, ranks=1), []),
        (NodeInfo(cpus=8, ranks=1), []),
        (NodeInfo(cpus=6, ranks=1), [("cpu-oversubscribed", 6, 0.7)]),
        (NodeInfo(cpus=32, ranks=8), [("cpu-oversubscribed", 6, 0.7)]),
        (NodeInfo(cpus=48, ranks=6), []),
        (NodeInfo(cpus=40, ranks=5), []),
        (NodeInfo(cpus=27, ranks=3), []),
        (NodeInfo(cpus=24, ranks=4), [("cpu-oversubscribed", 6, 0.7)]),
        (NodeInfo(descriptors=64), [("fd-exhaustion", 6, 0.65)]),
        (NodeInfo(descriptors=1024), []),
    ],
)
def test_loaders_are_held_against_the_node(
    around: NodeInfo, expected: list[tuple[str, int, float]]
) -> None:
    assert told(LOADERS, around) == expected


def test_all_loaders_together_are_held_against_twice_the_cpus() -> None:
    three = LOADERS.replace(
        "held_out = DataLoader([], num_workers=6", "held_out = DataLoader([], num_workers=8"
    )
    many = three.replace(
        "        held_out",
        "        more = DataLoader([], num_workers=8, persistent_workers=True)\n        held_out",
    )
    assert told(many, NodeInfo(cpus=8, ranks=1)) == [("cpu-oversubscribed", 6, 0.6)]
    assert told(three, NodeInfo(cpus=8, ranks=1)) == []


def test_the_command_takes_the_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.py").write_text(textwrap.dedent(LOADERS))
    assert run(["lint", str(tmp_path / "t.py")]) == 0
    assert run(["lint", str(tmp_path / "t.py"), "--cpus", "16", "--ranks", "4"]) == 1
    assert "4 ranks with 8 workers each share the 16 CPUs of this node." in capsys.readouterr().out
