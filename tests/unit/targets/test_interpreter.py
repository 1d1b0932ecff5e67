"""Which Python is the target, and what its answer means."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets.interpreter import choose, from_answer


def make_program(path: Path, first_line: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(first_line + "\n")
    path.chmod(0o755)
    return path


def test_what_was_asked_for_comes_first(tmp_path: Path) -> None:
    python = make_program(tmp_path / "env" / "bin" / "python")

    assert choose(str(python), ["torchrun"], {"VIRTUAL_ENV": "/other"}) == (str(python), "--python")
    assert choose(str(tmp_path / "env"), (), {}) == (str(python), "--python")
    with pytest.raises(UsageError, match="not on the PATH"):
        choose("python-of-nowhere", (), {})


def test_then_the_commands_own_launcher_then_the_active_environment(tmp_path: Path) -> None:
    python = make_program(tmp_path / "a" / "bin" / "python")
    make_program(tmp_path / "a" / "bin" / "torchrun", f"#!{python}")
    active = make_program(tmp_path / "b" / "bin" / "python")
    environ = {"PATH": str(tmp_path / "a" / "bin"), "VIRTUAL_ENV": str(tmp_path / "b")}

    assert choose(None, ["torchrun", "train.py"], environ) == (str(python), "the command")
    assert choose(None, ["python", "train.py"], environ) == (str(python), "the command")
    assert choose(None, [], environ) == (str(active), "VIRTUAL_ENV")
    assert choose(None, [], {"VIRTUAL_ENV": "/nowhere"})[0] == sys.executable


def test_conda_counts_when_it_is_not_base(tmp_path: Path) -> None:
    python = make_program(tmp_path / "bin" / "python")

    assert choose(None, [], {"CONDA_PREFIX": str(tmp_path), "CONDA_DEFAULT_ENV": "llm"}) == (str(python), "CONDA_PREFIX")
    assert choose(None, [], {"CONDA_PREFIX": str(tmp_path), "CONDA_DEFAULT_ENV": "base"})[0] == sys.executable


FOUND = {
    "version": "3.11.4",
    "torch_at": "/e/torch/__init__.py",
    "torch_is_package": True,
    "torch_version": "2.13.0+cpu",
    "found": {"torch": True, "numpy": False},
}


def test_a_cpu_build_of_torch() -> None:
    one = from_answer("/e/bin/python", {**FOUND, "torch_cuda": None, "nccl": False})

    assert (one.torch, one.cuda, one.gloo, one.nccl, one.reason, one.installed) == ("2.13.0+cpu", None, True, False, "", ("torch",))


def test_no_torch_is_a_reason_and_not_an_error() -> None:
    one = from_answer("/e/bin/python", {"version": "3.11.4"})

    assert (one.torch, one.gloo) == (None, False)
    assert one.reason.startswith("/e/bin/python has no torch; install it there")


def test_a_file_called_torch_is_not_torch() -> None:
    one = from_answer("/e/bin/python", {"version": "3.11.4", "torch_at": "/job/torch.py", "torch_is_package": False})

    assert "/job/torch.py" in one.reason
    assert "is not PyTorch" in one.reason


def test_an_old_python_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"Python 3\.8\.10"):
        from_answer("/e/bin/python", {"version": "3.8.10"})
