"""What the tab key offers, asked of the shells themselves; the manual page; the version."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from trainprobe import __version__
from trainprobe.cli import run
from trainprobe.cli.app import app, command_names
from trainprobe.cli.described import commands
from trainprobe.cli.manual import manual
from trainprobe.cli.shell_completion import SCRIPTS
from trainprobe.demo.jobs import jobs

ASKED = {
    "bash": 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _trainprobe;'
    ' printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": "compdef() { : }; _files() { print FILES };"
    ' compadd() { shift; for one in "$@"; do [[ $one == ${words[CURRENT]}* ]] && print -r -- $one; done; true };'
    ' source "$0"; words=("$@"); CURRENT=$#; _trainprobe',
    "fish": 'source $argv[1]; complete -C (string join " " -- $argv[2..])',
}  # fmt: skip
FLAGS = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}


@pytest.fixture(params=SCRIPTS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    script = tmp_path / f"completion.{name}"
    script.write_text(SCRIPTS[name](commands(app)))
    return name, script


def offered(shell: tuple[str, Path], *words: str) -> list[str]:
    name, script = shell
    done = subprocess.run(
        [name, *FLAGS[name], ASKED[name], str(script), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=script.parent,
    )
    assert not done.stderr, done.stderr
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


def test_commands_options_and_values_are_offered(shell: tuple[str, Path]) -> None:
    assert offered(shell, "trainprobe", "att") == ["attach"]
    assert set(offered(shell, "trainprobe", "")) >= {one.name for one in commands(app)}
    assert "--deep" in offered(shell, "trainprobe", "attach", "--d")
    assert "--sbatch" in offered(shell, "trainprobe", "ready", "--s")
    assert offered(shell, "trainprobe", "attach", "--format", "mark") == ["markdown"]
    assert "nagios" not in offered(shell, "trainprobe", "lint", "--format", "")
    assert set(offered(shell, "trainprobe", "demo", "")) >= {job.name for job in jobs()}
    assert "rank-stuck" in offered(shell, "trainprobe", "causes", "rank-s")
    assert "look-here" not in offered(shell, "trainprobe", "look")


def test_files_are_left_to_the_shell(shell: tuple[str, Path]) -> None:
    name, script = shell
    (script.parent / "report.json").touch()
    for words in (("explain", "rep"), ("attach", "--case", "rep"), ("diagnose", "--", "rep")):
        found = offered(shell, "trainprobe", *words)
        expected = {"bash": [], "zsh": ["FILES"], "fish": ["report.json"]}[name]
        assert found == expected, words


def test_a_shell_that_is_not_known_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "There is: bash, zsh, fish." in capsys.readouterr().err
    assert run(["completion", "bash"]) == 0
    assert capsys.readouterr().out == SCRIPTS["bash"](commands(app))


def test_the_manual_page_has_every_command_and_option_and_man_can_read_it(tmp_path: Path) -> None:
    page = manual(app)
    hidden = {one.name for one in app.registered_commands if one.hidden}
    for name in command_names():
        assert (f".SS trainprobe {name} " in page) == (name not in hidden)
    for one in commands(app):
        for option in one.options:
            assert all(option.says for _ in option.names), (one.name, option)
            assert all(name.replace("-", "\\-") in page for name in option.names)
    if shutil.which("groff"):
        file = tmp_path / "trainprobe.1"
        file.write_text(page)
        done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", str(file)], capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
        assert not done.stderr
        assert "--trigger-dump" in re.sub(r".\x08|\x1b\[\d*m", "", done.stdout)


def test_the_version_says_what_it_runs_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"trainprobe {__version__}"
    assert second.startswith("Python 3.")
    assert "py-spy " in second
