"""Names that lead back to themselves, rules that fail, files that cannot be read: nothing is
lost in silence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lint.reading_sources import program_of
from trainprobe.cli import run
from trainprobe.collect.collectors.lint import LintRequest, read_with_lint
from trainprobe.lint import engine
from trainprobe.lint.calls import call_sites
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.reached import reached_by_function

FAULT = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
FAULTS = (
    "import os\nimport numpy\nos.environ['OMP_NUM_THREADS'] = '1'\n",
    "import torch\ndist.init_process_group('nccl')\ntorch.save(x, 'a.pt')\n",
)
CIRCLES = {
    "a name given to itself": {
        "pk/peft.py": "from peft import get_peft_model\nget_peft_model = get_peft_model\n",
        "train.py": "from pk.peft import *\n",
    },
    "a module that is not there": {
        "pk/__init__.py": "from .cmudict import CMUDict\ncmudict = CMUDict()\n",
        "train.py": "import pk\npk.cmudict.load()\n",
    },
    "three modules": {
        "pk/a.py": "from .b import f\nf = f.f\n",
        "pk/b.py": "from .c import f\nf = f or f()\n",
        "pk/c.py": "from .a import f\nf = f[0]\nf()\n",
    },
    "stars": {
        "pk/a.py": "from .b import *\nx = y\n__all__ = [*x, *y]\n",
        "pk/b.py": "from .a import *\ny = x\ny()\n__all__ = a.__all__ + b.__all__\n",
    },
    "classes": {
        "pk/a.py": (
            "from pk.b import B\n"
            + "".join(
                f"class A{n}({', '.join(f'A{m}, B' for m in range(8))}):\n    x = A{n}.x\n"
                for n in range(8)
            )
        ),
        "pk/b.py": (
            "from pk.a import A7\nclass B(A7, B):\n    def f(self):\n        self.g = self.g.g or"
            " self.h.g\n        self.h = self.g.h or self.h.h\n        self.g()\n"
        ),
    },
    "branches": {
        "pk/a.py": (
            "".join(f"x{n} = {' or '.join(f'x{m}.y' for m in range(14))}\n" for n in range(14))
            + "def f():\n    x0.barrier()\n"
        )
    },
    "decorators": {
        "pk/a.py": (
            "@f\ndef f(): f()\n@C.f\nclass C:\n    @C.f\n    def f(self): return self.f()(C)\n    C"
            " = C\nf = C.f(f)\n"
        )
    },
}


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in {"pk/__init__.py": "", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("name", CIRCLES)
def test_a_circle_of_names_costs_no_rule(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, {**CIRCLES[name], "pk/fault.py": FAULT})

    assert run(["lint", str(tmp_path), "--json", "-", "-q"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert [(Path(one["file"]).name, one["id"]) for one in told["findings"]] == [
        ("fault.py", "rank-conditional-collective")
    ]
    assert told["not_read"] == []
    assert told["complete"] is True
    assert told["read"]["took_s"] < 5


def planted(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    """A rule that finds each barrier, and fails on the files named bad."""

    def find(program: Program) -> Iterator[Finding]:
        for module in program.examined:
            for function in call_sites(program):
                reached_by_function(program, function)
            program.memory["half done"] = True
            if "bad" in module.path:
                raise error("of the test")
            yield rule.finding(module, module.tree, "s.")

    rule = Rule("planted", "deadlock", "t", "w", 0.9, find=find)
    rules = [*(one for one in engine.all_rules() if one.id == "rank-conditional-collective"), rule]
    monkeypatch.setattr(engine, "all_rules", lambda: sorted(rules, key=lambda one: one.id))


@pytest.mark.parametrize("error", [RecursionError, KeyError, AssertionError, MemoryError])
def test_a_rule_that_fails_is_left_out_for_that_file_alone(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(monkeypatch, error)
    program = program_of(**{f"m{number}": FAULT for number in range(9)}, bad1=FAULT, bad2=FAULT)

    found, left_out = engine.findings_of(program)

    assert sorted(one.file for one in found if one.rule == "planted") == [
        f"at/m{number}.py" for number in range(9)
    ]
    assert len([one for one in found if one.rule == "rank-conditional-collective"]) == 11
    assert [(one.file, one.rule) for one in left_out] == [
        ("at/bad1.py", "planted"),
        ("at/bad2.py", "planted"),
    ]
    assert "half done" not in program.memory


@pytest.mark.parametrize("broken", [rule.id for rule in engine.all_rules()])
def test_no_rule_takes_another_with_it(broken: str) -> None:
    whole = engine.all_rules()

    def fails(program: Program) -> Iterator[Finding]:
        raise RecursionError(len(program.modules))

    rules = [replace(rule, find=fails) if rule.id == broken else rule for rule in whole]
    texts = {f"m{number}": FAULT + text for number, text in enumerate(FAULTS)}
    sound = {(one.file, one.line, one.rule) for one in engine.findings_of(program_of(**texts))[0]}
    found, left_out = engine.findings_of(program_of(**texts), chosen=rules)

    assert {(one.file, one.line, one.rule) for one in found} == {
        one for one in sound if one[2] != broken
    }
    assert {one.rule for one in left_out} == {broken}
    assert len({rule for *_, rule in sound}) >= 3


def test_a_rule_that_fails_everywhere_ends_soon_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted(monkeypatch, ValueError)
    _, left_out = engine.findings_of(
        program_of(**{f"bad{number}": "x = 1\n" for number in range(300)})
    )

    assert 1 <= len(left_out) <= engine.MOST_TRIES
    assert sum(int(one.reason.split()[0]) if not one.file else 1 for one in left_out) == 300


def test_a_call_that_cannot_be_followed_costs_its_file_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed = Program.called

    def called(self: Program, module: object, call: object) -> object:
        if getattr(module, "name", "") == "bad":
            raise RecursionError
        return followed(self, module, call)  # type: ignore[arg-type]

    monkeypatch.setattr(Program, "called", called)
    program = program_of(bad="f()\n", good="def g(): pass\ng()\n")

    assert [one.name for one in call_sites(program)] == ["g"]
    assert [one.file for one in program.not_read] == ["at/bad.py"]


UNREADABLE = {
    "syntax": b"def (:\n",
    "encoding": b"# coding: nonsense\n",
    "null": b"x = 1\x00\n",
    "depth": b"(" * 5000 + b")" * 5000,
    "line": b"#" * 300_000,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_could_not_be_read_is_never_taken_for_sound(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_bytes(UNREADABLE[name])
    (tmp_path / "good.py").write_text("x = 1\n")

    assert run(["lint", str(tmp_path)]) == 3
    assert "Nothing found in what was read, which is not all" in capsys.readouterr().out
    assert run(["lint", str(tmp_path), "-q"]) == 3
    assert capsys.readouterr().out.startswith(f"not read: {tmp_path}/bad.py: ")
    assert run(["lint", str(tmp_path), "-q", "--sarif", "-", "--json", str(tmp_path / "j")]) == 3
    (invocation,) = (sarif := json.loads(capsys.readouterr().out))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["level"] == "error"
    assert sarif["runs"][0]["results"] == []
    assert json.loads((tmp_path / "j").read_text())["complete"] is False
    (tmp_path / "fault.py").write_text(FAULT)
    assert run(["lint", str(tmp_path), "-q"]) == 1
    assert "not read: " in capsys.readouterr().out
    (tmp_path / "bad.py").unlink()
    (tmp_path / "fault.py").unlink()
    assert run(["lint", str(tmp_path)]) == 0


def test_a_rule_that_was_left_out_is_printed_and_leaves_the_look_undetermined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(monkeypatch, RecursionError)
    (tmp_path / "bad.py").write_text("x = 1\n")

    for quiet in ([], ["-q"]):
        assert run(["lint", str(tmp_path), *quiet]) == 3
        assert (
            f"not judged: {tmp_path}/bad.py: The rule planted was left out: it refers to itself too"
            " deeply." in capsys.readouterr().out
        )
    assert run(["lint", str(tmp_path), "--sarif", "-"]) == 3
    (note,) = json.loads(capsys.readouterr().out)["runs"][0]["invocations"][0][
        "toolExecutionNotifications"
    ]
    assert note["associatedRule"] == {"id": "planted"}


def test_folders_that_cannot_be_opened_or_hold_no_source_were_not_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["lint", str(tmp_path), "-q"]) == 3
    assert "It holds no Python file and no notebook." in capsys.readouterr().out
    (tmp_path / "closed").mkdir()
    (tmp_path / "good.py").write_text("x = 1\n")
    scandir = os.scandir

    def denied(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    assert run(["lint", str(tmp_path), "-q"]) == 3
    assert "closed: It cannot be opened: Permission denied." in capsys.readouterr().out


def test_a_circle_in_the_script_of_a_run_leaves_the_look_whole(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from .gone import f\nfrom train import g\ng = g\n" + FAULT)

    seen = read_with_lint(LintRequest(str(tmp_path / "train.py"), str(tmp_path)))

    assert (seen.outcome, [one["id"] for one in seen.data["findings"]]) == (
        "ok",
        ["rank-conditional-collective"],
    )


def test_tests_are_read_where_they_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("tests/workers.py", "test_train.py", "train.py", "test_images.py"):
        (tmp_path / name).write_text(FAULT + "def test_it(): pass\n" * (name == "test_train.py"))

    assert run(["lint", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "2 findings in 2 files" in told
    assert "2 files of tests left out; name them to have them read." in told
    for named in ("tests", "tests/workers.py", "test_train.py"):
        assert run(["lint", str(tmp_path / named), "--json", "-", "-q"]) == 1
        assert json.loads(capsys.readouterr().out)["read"]["tests_left_out"] == 0
    (tmp_path / "train.py").unlink()
    (tmp_path / "test_images.py").unlink()
    assert run(["lint", str(tmp_path), "-q"]) == 3
    assert "It holds only tests" in capsys.readouterr().out
