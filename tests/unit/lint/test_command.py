"""The command: what it prints, mends and refuses."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from trainprobe.cli import run

FAULT = (
    'import torch.distributed as dist\nif dist.get_rank() == 0:\n    print("ü")\n   '
    " dist.barrier()\n"
)
MENDED = FAULT.replace("    dist.barrier", "dist.barrier")


def test_findings_are_printed_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.py"
    path.write_text(FAULT)
    assert run(["lint", str(path)]) == 1
    text = capsys.readouterr().out
    assert f"{path}:4:5  rank-conditional-collective  " in text
    assert "1 finding in 1 file" in text
    assert run(["lint", str(path), "--ignore", "rank-conditional-collective"]) == 0


def test_json_and_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.py"
    path.write_text(FAULT)
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert (
        run(["lint", str(tmp_path), "--json", "-", "--quiet", "--sarif", str(tmp_path / "s.sarif")])
        == 1
    )
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "trainprobe.lint/1"
    assert [(one["id"], one["line"], one["column"]) for one in told["findings"]] == [
        ("rank-conditional-collective", 4, 5)
    ]
    assert [Path(one["file"]).name for one in told["not_read"]] == ["broken.py"]
    result = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 4,
        "startColumn": 5,
    }


@pytest.mark.parametrize(
    ("newline", "encoding"),
    [("\n", "utf-8"), ("\r\n", "utf-8"), ("\n", "utf-8-sig"), ("\n", "latin-1")],
)
def test_fix_keeps_the_file_as_it_was(tmp_path: Path, newline: str, encoding: str) -> None:
    path = tmp_path / "t.py"
    head = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    path.write_bytes((head + FAULT).replace("\n", newline).encode(encoding))
    path.chmod(0o750)
    assert run(["lint", str(path), "--diff"]) == 1
    assert path.read_bytes() == (head + FAULT).replace("\n", newline).encode(encoding)
    assert run(["lint", str(path), "--fix"]) == 0
    assert path.read_bytes() == (head + MENDED).replace("\n", newline).encode(encoding)
    assert path.stat().st_mode & 0o777 == 0o750
    ast.parse(path.read_bytes())
    before = path.read_bytes()
    assert run(["lint", str(path), "--fix"]) == 0
    assert path.read_bytes() == before


def test_notebooks_are_read(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip list\n"]},
        {"cell_type": "code", "source": FAULT},
    ]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    assert run(["lint", str(tmp_path / "n.ipynb"), "--fix"]) == 1


def test_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["lint", str(tmp_path / "none.py")]) == 2
    assert run(["lint", str(tmp_path), "--select", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


HOSTILE = {
    "parentheses": b"(" * 5000 + b")" * 5000,
    "sums": b"x = " + b"+".join([b"1"] * 50_000),
    "attributes": b"x" + b".a" * 30_000,
    "negations": b"x = " + b"-" * 20_000 + b"1",
    "ifs": "\n".join(" " * n + "if x:" for n in range(150)).encode(),
    "elifs": b"if x:\n    pass\n" + b"elif y:\n    pass\n" * 3000,
    "line": b"x = '" + b"a" * (10 * 1024 * 1024 // 4) + b"'",
    "large": b"x = '" + b"a" * (10 * 1024 * 1024) + b"'",
    "encoding": b"# coding: nonsense\nx = 1\n",
    "rot13": b"# coding: rot13\nx = 1\n",
    "bytes": b"x = '\xff\xfe'\n",
    "null": b"x = 1\x00\n",
    "surrogates": b"x = '\\ud800'\nimport torch.distributed as \xed\xa0\x80\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_source_ends_in_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_bytes(HOSTILE[name])
    (tmp_path / "good.py").write_text(FAULT)
    assert run(["lint", str(tmp_path), "--no-color"]) == 1
    told = capsys.readouterr()
    assert "1 finding in 1 file" in told.out
    assert "not read: " in told.out
    assert told.err == ""


def test_circles_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    (tmp_path / "gone.ipynb").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a.py").write_text(
        "from b import *\nfrom b import f\nclass A(B):\n    x = y\n    y = x\n    def f(self):\n   "
        "     self.z = self.z.z\n        return self.f().f()\n"
    )
    (tmp_path / "b.py").write_text(
        "from a import *\nfrom a import f, A\nclass B(A):\n    pass\nrank = rank or rank\nif rank"
        " == 0:\n    f(f(f))\n"
    )
    (tmp_path / "n.ipynb").write_text("[" * 100_000)
    (tmp_path / "c.yaml").write_text("a: &a [x]\nb: [*a, *a]\n")
    (tmp_path / "d.py").write_text("import yaml\nc = yaml.safe_load(open('c.yaml'))\nx = c['a']\n")
    assert run(["lint", str(tmp_path)]) == 3
    assert "It is a link that leads nowhere." in capsys.readouterr().out
