"""The list of the demo's jobs, and the command up to the start of one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from trainprobe.causes import built
from trainprobe.cli import run
from trainprobe.demo import stage
from trainprobe.demo.jobs import job_called, jobs
from trainprobe.errors import UsageError
from trainprobe.system.own_programs import folder_of_demos
from trainprobe.targets import interpreter
from trainprobe.targets.interpreter import Interpreter


def test_each_job_has_its_program_and_each_program_its_job() -> None:
    programs = {path.stem for path in Path(folder_of_demos()).glob("*.py")}
    known = jobs()
    assert len(known) >= 8
    assert sum("transformers" in job.needs for job in known) >= 2
    wanted = {job.program for job in known} | {job.beside for job in known if job.beside}
    assert programs == wanted
    for name in programs:
        tree = ast.parse((Path(folder_of_demos()) / f"{name}.py").read_text())
        assert ast.get_docstring(tree), name


def test_each_job_expects_a_cause_that_there_is_and_says_what_it_rests_on() -> None:
    ids = {cause.id for cause in built()} | {""}
    for job in jobs():
        assert job.cause in ids, job.name
        assert job.moral.endswith("."), job.name
        assert job.about.endswith("."), job.name


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean file-lock-held"):
        job_called("file-lock")
    with pytest.raises(UsageError, match="See them all"):
        job_called("\x1b[31mzzz")


def python(monkeypatch: pytest.MonkeyPatch, found: Interpreter) -> None:
    monkeypatch.setattr(interpreter, "find", lambda _asked: found)


def test_the_list_says_what_is_missing_and_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python(monkeypatch, Interpreter("/opt/python", "3.12.1", torch="2.9.0"))
    assert run(["demo"]) == 0
    said = capsys.readouterr().out
    assert (
        " ".join(said.split()).count("(Needs transformers and accelerate: not in /opt/python.)")
        == 2
    )
    assert all(job.name in said for job in jobs())
    assert max(map(len, said.splitlines())) <= 100


def test_without_torch_nothing_is_started_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage, "hung_job", lambda *_: pytest.fail("something was started"))
    python(monkeypatch, Interpreter("/opt/python", "3.12.1", reason="/opt/python has no torch"))
    assert run(["demo", "file-lock-held"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "/opt/python has no torch" in said
    assert "/opt/python -m pip install torch --index-url https://" in said
    assert run(["demo"]) == 0
    assert "None can be started now: /opt/python has no torch." in capsys.readouterr().out


def test_a_job_on_transformers_is_not_started_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python(monkeypatch, Interpreter("/opt/python", "3.12.1", torch="2.9.0"))
    assert run(["demo", "trainer-evaluates-on-rank-0"]) == 2
    assert "needs transformers and accelerate" in capsys.readouterr().err


def test_the_list_says_which_jobs_take_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = ("torch", "transformers", "accelerate")
    python(monkeypatch, Interpreter("/opt/python", "3.12.1", torch="2.9.0", installed=stack))
    assert run(["demo"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("(Longer, up to 30 seconds: each rank imports transformers.)") == 2


def test_a_program_beside_the_job_says_when_it_is_ready() -> None:
    for job in jobs():
        assert bool(job.beside) == bool(job.beside_makes), job.name
        if job.beside:
            source = (Path(folder_of_demos()) / f"{job.beside}.py").read_text()
            assert job.beside_makes in source, job.name
