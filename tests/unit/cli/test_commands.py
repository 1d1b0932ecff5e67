"""The commands from argv to exit code; gathering and judging are stood in for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases.expectation import CASES
from tests.unit.report import handmade
from trainprobe import pipelines
from trainprobe.cli import run
from trainprobe.cli.exit_codes import MEANINGS, code_of
from trainprobe.config import Settings
from trainprobe.errors import CannotLook, UsageError
from trainprobe.model.diagnosis import Report
from trainprobe.model.progress import Progress
from trainprobe.model.request import DiagnoseRequest
from trainprobe.report.text import quiet_text_of, text_of

Asked = list[tuple[DiagnoseRequest, Settings]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """What `diagnose` was asked for; it finds the hung case at once."""
    seen: Asked = []

    def diagnose(request: DiagnoseRequest, settings: Settings, progress: Progress) -> Report:
        progress.plan(())
        progress.cell_began("host", "host@1", 1, "Does it hold?", 20.0)
        progress.cell_ended("host", "host@1", "passed", 0.4, "")
        progress.note("A note.")
        seen.append((request, settings))
        return handmade.HUNG

    monkeypatch.setattr(pipelines, "diagnose", diagnose)
    monkeypatch.chdir(tmp_path)
    return seen


def test_the_report_goes_to_stdout_and_progress_to_stderr(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", "--nproc", "4"]) == 1
    said = capsys.readouterr()
    assert said.out == text_of(handmade.HUNG)
    assert said.err.splitlines() == [
        "host@1            began           Does it hold? (at most 20 s)",
        "host@1            passed            0.4 s",
        "A note.",
    ]
    assert asked == [(DiagnoseRequest(nproc=4), Settings())]


def test_every_option_reaches_the_request(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("nproc: 2\nimports: [numpy]\nrungs: {only: [host]}\n")
    line = (
        "diagnose --gpus 8 --python /p --imports a,b --imports c --only host --skip gpu --timeout 9"
        " --case C --config team.yaml --probe-dir P --probe-dir Q"
    )
    run([*line.split(), "--", "torchrun", "--nproc-per-node", "{ranks}", "--nproc", "3"])
    request, settings = asked[0]
    assert request == DiagnoseRequest(
        nproc=None,
        gpus=8,
        interpreter="/p",
        form="command",
        argv=("torchrun", "--nproc-per-node", "{ranks}", "--nproc", "3"),
        imports=("a", "b", "c"),
        only=("host",),
        skip=("gpu",),
        timeout_s=9.0,
        case="C",
        probe_dirs=("P", "Q"),
        config="team.yaml",
    )
    assert settings.nproc == 2


def test_the_file_speaks_where_the_command_line_is_silent(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "trainprobe.yaml").write_text(
        "nproc: 2\nimports: [numpy]\nrungs: {skip: [host]}\ntimeouts: {total_s: 5}\n"
    )
    run(["diagnose", "--", "train.py", "--", "x"])
    assert asked[0][0] == DiagnoseRequest(
        nproc=2,
        form="launch",
        argv=("train.py", "--", "x"),
        imports=("numpy",),
        skip=("host",),
        timeout_s=5.0,
    )


def test_json_alone_on_stdout(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "--json", "-"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "hung"
    assert said.err.endswith(text_of(handmade.HUNG))
    assert run(["diagnose", "--json", "-", "--quiet"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "hung"
    assert said.err == ""
    assert len(asked) == 2


def test_json_to_a_file_and_quiet(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", "--json", "r.json", "-q"]) == 1
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "trainprobe.report/1"
    said = capsys.readouterr()
    assert said.out == quiet_text_of(handmade.HUNG)
    assert said.err == ""
    assert asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("diagnose --nproc 0", "--nproc needs a whole number"),
        ("diagnose --gpus x", "--gpus needs a whole number"),
        ("diagnose --timeout -1", "--timeout needs seconds"),
        ("diagnose --nproc", "requires an argument"),
        ("diagnose --nprc 3", "--nproc"),
        ("diagnose --nproc 1 --gpus 1", "Give one of them"),
        ("diagnose train.py", "trainprobe diagnose -- train.py"),
        ("diagnose --json /no/such/folder/r.json", "cannot be written"),
        ("diagnose --config no.yaml", "no.yaml cannot be read"),
        ("nonsense", "No such command"),
        ("explain", "PATH"),
        ("causes no-such-cause", "There is no cause"),
        ("causes rank-stuk", "Did you mean rank-stuck?"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    asked: Asked, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert asked == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("It is not there.", "Look again."), 2, "It is not there. Look again."),
        (CannotLook("Nothing could be seen."), 3, "Nothing could be seen."),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("division\nby zero"), 70, "ZeroDivisionError: division by zero"),
    ],
)
def test_failures_end_in_one_sentence(
    error: BaseException,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def explain(*_: object) -> Report:
        raise error

    monkeypatch.setattr(pipelines, "explain", explain)
    monkeypatch.delenv("TRAINPROBE_DEBUG", raising=False)
    assert run(["explain", "x"]) == code
    said = capsys.readouterr().err
    assert words in said
    assert len(said.split()) < 40
    assert len(said.strip().splitlines()) == bool(words)
    if code == 70:
        kept = Path(said.split("The traceback lies in ")[1].strip().rstrip("."))
        assert "ZeroDivisionError" in kept.read_text()
        kept.unlink()


def test_a_fault_is_shown_in_full_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(*_: object) -> Report:
        raise ZeroDivisionError

    monkeypatch.setattr(pipelines, "explain", explain)
    monkeypatch.setenv("TRAINPROBE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run(["explain", "x"])


@pytest.mark.parametrize("name", handmade.ALL)
def test_explain_prints_what_was_judged(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipelines, "explain", lambda *_: handmade.ALL[name])
    expected = {
        "hung": 1,
        "crashed": 1,
        "healthy": 0,
        "undetermined": 3,
        "at-risk": 1,
        "two-groups": 1,
    }
    assert run(["explain", "case"]) == expected[name]
    assert capsys.readouterr().out == text_of(handmade.ALL[name])


def test_an_interrupted_climb_ends_with_130_after_its_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        pipelines,
        "diagnose",
        lambda *_: replace(handmade.UNDETERMINED, extra={"interrupted": True}),
    )
    assert run(["diagnose"]) == 130
    assert "UNDETERMINED" in capsys.readouterr().out


def test_the_table_of_exit_codes() -> None:
    assert code_of("healthy", conclusive=True) == 0
    assert code_of("healthy", conclusive=False) == 3
    assert {
        code_of(verdict, conclusive=conclusive)
        for verdict in ("hung", "crashed", "slow", "at-risk")
        for conclusive in (True, False)
    } == {1}
    assert code_of("undetermined", conclusive=False) == 3
    assert code_of("hung", conclusive=True, interrupted=True) == 130
    assert set(MEANINGS) == {0, 1, 2, 3, 10, 70, 74, 75, 126, 127, 130}


def test_the_catalogue_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["causes"]) == 0
    listed = capsys.readouterr().out
    assert "rank-stuck" in listed
    assert "Known by name, not weighed yet" in listed
    assert max(map(len, listed.splitlines())) <= 100
    assert run(["causes", "rank-stuck"]) == 0
    assert "A rank stands still in its own code" in capsys.readouterr().out
    assert run(["causes", "cannot-look"]) == 0
    assert "not weighed yet" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["diagnose", "explain", "causes"])
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"  trainprobe {command}" in capsys.readouterr().out.split("Example")[1]


def test_no_words_at_all_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "diagnose" in capsys.readouterr().out


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    reads_none, writes = os.pipe()
    os.close(reads_none)
    with os.fdopen(writes, "w") as closed:
        ran = subprocess.run(
            [sys.executable, "-m", "trainprobe", "causes"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from trainprobe.cli import run; run(['--help']); print([m for m in ('torch',"
        " 'rich', 'yaml', 'psutil') if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_explain_says_what_changed_since_an_earlier_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, then = (
        str(CASES / f"attach-{name}") for name in ("lock-held-outside", "rank-0-evaluates")
    )
    to = ["--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html")]
    assert run(["explain", now, "--against", then, "--quiet", *to]) == 1
    assert run(["explain", now, "--against", then]) == 1
    said = capsys.readouterr().out
    assert f"since {then} (healthy)" in " ".join(said.split())
    assert "- It was healthy and is hung now." in said
    against = json.loads((tmp_path / "r.json").read_text())["against"]
    assert against["sentences"][0] == "It was healthy and is hung now."
    assert "It was healthy and is hung now." in (tmp_path / "r.html").read_text()
    assert run(["explain", now, "--against", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
