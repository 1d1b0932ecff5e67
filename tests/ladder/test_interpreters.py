"""Other people's interpreters, asked for real."""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets import interpreter, script


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_this_python() -> None:
    one = interpreter.ask(sys.executable)

    assert one.version == sysconfig.get_python_version() + "." + str(sys.version_info.micro)
    assert one.prefix == sys.prefix
    assert bool(one.torch) == bool(not one.reason)


def test_an_environment_without_torch(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    one = interpreter.ask(python)

    assert one.torch is None
    assert (
        one.reason
        == f"{python} has no torch; install it there (`{python} -m pip install torch`) or name"
        " another Python with --python"
    )


def test_one_that_hangs_is_left_after_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "ASK_S", 0.5)

    with pytest.raises(UsageError, match=r"did not answer within"):
        interpreter.ask(program(tmp_path / "python", "#!/bin/sh\nsleep 600\n"))


def test_one_that_prints_nonsense_and_one_of_an_older_age(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not answer as a Python"):
        interpreter.ask(program(tmp_path / "a", "#!/bin/sh\necho hello\n"))
    with pytest.raises(UsageError, match=r"is Python 2\.7\.18"):
        interpreter.ask(
            program(tmp_path / "b", '#!/bin/sh\necho \'TRAINPROBE {"version": "2.7.18"}\'\n')
        )


def test_noise_from_site_does_not_matter(tmp_path: Path) -> None:
    noisy = program(
        tmp_path / "python", f'#!/bin/sh\necho "Loading modules ..."\nexec {sys.executable} "$@"\n'
    )

    assert interpreter.ask(noisy).version.startswith(sysconfig.get_python_version())


def test_a_script_is_read_by_the_target_and_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch, json\nopen('executed', 'w')\n")
    one = script.read(str(path), sys.executable)

    assert (one.imports, one.syntax_error, one.reason) == (("torch",), None, "")
    assert not (tmp_path / "executed").exists()


def test_an_unreadable_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        script.read(str(tmp_path), sys.executable)
