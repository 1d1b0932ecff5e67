"""The user's script as text: imports, local modules, syntax, and the answer of the target's
Python.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.errors import UsageError
from trainprobe.targets.script import in_command, parse_answer
from trainprobe.targets.script_reader import read

SCRIPT = """
import os, json
import torch.distributed as dist
from transformers import AutoModel
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import pandas
try:
    import flash_attn
except ImportError:
    flash_attn = None
if os.environ.get("DEBUG"):
    import ipdb
from . import sibling
import mydata
def main():
    import wandb
    dist.init_process_group("gloo")
if __name__ == "__main__":
    import tqdm
    main()
"""


def test_imports_of_a_script_and_one_level_of_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "mydata.py").write_text("import datasets\nimport mydeeper\n")
    (tmp_path / "mydeeper.py").write_text("import scipy\n")

    answer = read(str(tmp_path / "train.py"))

    assert answer["imports"] == ["datasets", "torch", "tqdm", "transformers"]
    assert answer["optional"] == ["flash_attn", "ipdb"]
    assert answer["local"] == ["mydata", "mydeeper"]
    assert (answer["distributed"], answer["spawns"], answer["syntax_error"]) == (True, False, None)


def test_a_broken_neighbour_does_not_matter_here(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import mydata\nimport torch\n")
    (tmp_path / "mydata.py").write_text("import (\n")

    assert read(str(tmp_path / "train.py"))["imports"] == ["torch"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("import torch\nfor x in\n    pass\n", 2), ("x = 1\n\0\n", None), ("def f(:\n", 1)],
)
def test_a_syntax_error_has_its_line(tmp_path: Path, text: str, line: int | None) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)

    fault = read(str(path))["syntax_error"]

    assert isinstance(fault, dict)
    assert fault["says"]
    assert line is None or fault["line"] == line


def test_a_script_that_spawns_its_own_ranks(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch.multiprocessing as mp\nmp.spawn(print, nprocs=4)\n")

    assert read(str(path))["spawns"] is True


def test_the_script_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")

    assert in_command(["--nproc-per-node", "2", "train.py", "--out", "x.py"], str(tmp_path)) == str(
        tmp_path / "train.py"
    )
    assert in_command(["-m", "package.train"], str(tmp_path)) is None
    with pytest.raises(UsageError, match=r"trian\.py does not exist"):
        in_command(["--nproc-per-node", "2", "trian.py"], str(tmp_path))


def test_the_script_of_a_shell_command_is_found_and_never_missed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "my train.py").write_text("")

    assert in_command(["-c", "set -e; python 'train.py' --lr 1"], str(tmp_path)) == str(
        tmp_path / "train.py"
    )
    assert in_command(["my train.py"], str(tmp_path)) == str(tmp_path / "my train.py")
    assert in_command(["-c", "cd src && python go.py"], str(tmp_path)) is None


@given(st.binary(max_size=300))
def test_any_answer_is_read_or_refused(stdout: bytes) -> None:
    assert parse_answer(stdout) is None or isinstance(parse_answer(stdout), dict)


def test_an_answer_among_noise() -> None:
    assert parse_answer(b'site says hello\nTRAINPROBE {"version": "3.11.4"}\nbye\n') == {
        "version": "3.11.4"
    }
    assert parse_answer(b"TRAINPROBE [1]") is None
