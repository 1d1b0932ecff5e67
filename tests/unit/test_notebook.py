"""`%load_ext trainprobe`, with a stand-in for IPython's shell."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import trainprobe
from trainprobe.collect import pyspy
from trainprobe.notebook import Answer, KeptCells, command

LOG = """\
[rank0]: step 3 loss 0.52
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 30, in <module>
[rank1]:     main()
[rank1]:   File "/job/train.py", line 14, in main
[rank1]:     row = json.loads(line)
[rank1]: ValueError: "the line" is </script> broken
"""


class Shell:
    """What the extension uses of IPython's shell."""

    def __init__(self, folder: Path) -> None:
        self.magics: dict[str, Callable[[str], Any]] = {}
        self.compile = SimpleNamespace(
            get_code_name=lambda raw, _code, _number: str(folder / f"{len(raw)}.py")
        )

    def register_magic_function(self, function: Callable[[str], Any], _: str, name: str) -> None:
        self.magics[name] = function


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ipykernel_77"


def test_the_answer_part_of_the_page_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG)
    answer = command(f"explain {log}")
    assert answer.report is not None
    assert answer.report.verdict == "crashed"
    assert repr(answer).startswith("explain")
    shown = answer._repr_html_()
    assert shown is not None
    assert shown.startswith("<iframe sandbox srcdoc=")
    assert "user-exception" in shown
    # the page is one attribute, whatever the job printed
    assert shown.count("<") == 2
    # the answer alone: no drawings, no evidence
    assert "id=&quot;answer&quot;" in shown
    assert "id=&quot;evidence&quot;" not in shown


def test_a_command_without_a_report_is_shown_as_text() -> None:
    answer = command("causes rank-stuck")
    assert answer.report is None
    assert answer._repr_html_() is None
    assert "rank-stuck" in repr(answer)


def test_what_cannot_be_used_is_said() -> None:
    assert "nowhere.log" in repr(command("explain /nowhere.log"))


def test_the_extension_adds_its_command_and_keeps_cells(folder: Path) -> None:
    shell = Shell(folder)
    trainprobe.load_ipython_extension(shell)
    assert list(shell.magics) == ["trainprobe"]
    assert shell.compile.get_code_name("train()\n", "train()\n", 3) == str(folder / "8.py")
    assert (folder / "cell 3").read_text() == "train()\n"


def test_a_stack_calls_a_cell_by_its_number(folder: Path) -> None:
    cells = KeptCells()
    cells.keep(str(folder / "8.py"), "train()\n", 3)
    rows = [
        {
            "os_thread_id": 1,
            "frames": [
                {"name": "train", "filename": str(folder / "8.py"), "line": 1},
                {"name": "f", "filename": str(folder / "9.py"), "line": 2},
            ],
        }
    ]
    dump = pyspy.parse(json.dumps(rows).encode(), 1)
    assert dump is not None
    assert [frame["file"] for frame in dump.threads[0]["frames"]] == [
        str(folder / "cell 3"),
        str(folder / "9.py"),
    ]
    cells.remove()
    assert not folder.exists()


def test_a_cell_that_runs_again_has_its_new_number(folder: Path) -> None:
    cells = KeptCells()
    cells.keep(str(folder / "8.py"), "train()\n", 3)
    cells.keep(str(folder / "8.py"), "train()\n", 5)
    assert os.readlink(folder / "8.py") == "cell 5"


def test_nothing_is_written_where_others_may_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    KeptCells().keep(str(folder / "8.py"), "train()\n", 3)
    assert list(folder.iterdir()) == []


def test_what_is_typed_into_a_terminal_is_left_alone(tmp_path: Path) -> None:
    KeptCells().keep("<ipython-input-3-12ab>", "train()\n", 3)
    KeptCells().keep(str(tmp_path / "train.py"), "train()\n", 3)
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_is_no_cell_is_not_followed(folder: Path) -> None:
    folder.mkdir()
    (folder / "8.py").symlink_to("/etc/passwd")
    rows = [{"frames": [{"name": "f", "filename": str(folder / "8.py"), "line": 1}]}]
    dump = pyspy.parse(json.dumps(rows).encode(), 1)
    assert dump is not None
    assert dump.threads[0]["frames"][0]["file"] == str(folder / "8.py")


def test_an_answer_is_its_text_on_a_terminal() -> None:
    assert repr(Answer("HUNG.\n")) == "HUNG."
