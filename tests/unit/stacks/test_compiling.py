"""How much of the time a rank compiles, and how often it had done so before."""

from __future__ import annotations

import pytest

from trainprobe.stacks import compiling
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.spells import share

SITE = "/env/lib/python3.11/site-packages/"


@pytest.mark.parametrize(
    ("reason", "count"),
    [
        ("0/22: tensor 'x' size mismatch at index 0. expected 31, actual 32", 23),
        ("3/0: L['n'] == 4", 1),
        ("2/5_1: L['n'] == 4", 6),
        ("None", None),
        ("", None),
    ],
)
def test_dynamo_numbers_what_it_has_compiled(reason: str, count: int | None) -> None:
    assert compiling.done_before(reason) == count


def test_the_longest_compilation_lasts_through_its_spells() -> None:
    spells = [(0.0, 1.0, True), (1.0, 3.0, True), (3.0, 4.0, False), (4.0, 5.0, True)]

    assert compiling.longest_s(spells) == 3.0
    assert share(spells) == 0.8
    assert compiling.worth_more([spells])


def test_what_only_runs_compiled_code_does_not_compile() -> None:
    assert compiling.compiles([Frame("_compile", SITE + "torch/_dynamo/convert_frame.py", 9)])
    assert compiling.compiles([Frame("fw_compiler", SITE + "torch/_inductor/compile_fx.py", 9)])
    assert not compiling.compiles([Frame("run", SITE + "torch/_inductor/compile_fx.py", 9)])
    assert not compiling.compiles([Frame("call", SITE + "torch/_inductor/output_code.py", 9)])
