"""Which Python is the target, and what its answer means."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets.interpreter import choose, find, from_answer


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


def test_then_the_commands_own_launcher_then_the_first_on_the_path(tmp_path: Path) -> None:
    python = make_program(tmp_path / "a" / "bin" / "python")
    make_program(tmp_path / "a" / "bin" / "torchrun", f"#!{python}")
    first = make_program(tmp_path / "b" / "bin" / "python3")
    environ = {"PATH": f"{tmp_path / 'b' / 'bin'}:{tmp_path / 'a' / 'bin'}"}

    assert choose(None, ["torchrun", "train.py"], environ) == (str(python), "the command")
    assert choose(None, [str(python), "train.py"], environ) == (str(python), "the command")
    assert choose(None, [], environ) == (str(first), "PATH")
    assert choose(None, [], {"PATH": "/nowhere"}) == (sys.executable, "the Python of this tool")


TWO_LINES = '#!/bin/sh\n\'\'\'exec\' "{}" "$0" "$@"'


@pytest.mark.parametrize(
    "lines", ["#!{}", "#!{} -E", "#!/usr/bin/env python", "#!/usr/bin/env -S python -u", TWO_LINES]
)
def test_a_launcher_names_its_python_in_its_first_lines(lines: str, tmp_path: Path) -> None:
    python = make_program(tmp_path / "environment" / "bin" / "python")
    make_program(tmp_path / "tools" / "accelerate", lines.replace("{}", str(python)))
    make_program(tmp_path / "tools" / "numactl")
    environ = {"PATH": f"{tmp_path / 'tools'}:{python.parent}"}
    wrapped = ["numactl", "--cpunodebind", "0", "accelerate", "launch", "train.py"]

    assert choose(None, wrapped, environ) == (str(python), "the command")
    assert choose(None, ["numactl", "train.py", "accelerate"], environ)[1] == "PATH"


def answering(path: Path, *, torch: bool) -> Path:
    """A Python that says who it is, and nothing else."""
    there = (
        {"torch_at": "/e/torch/__init__.py", "torch_is_package": True, "torch_version": "2.13.0"}
        if torch
        else {}
    )
    answer = json.dumps({"version": "3.11.4", "prefix": str(path.parent.parent), **there})
    return make_program(path, f"#!/bin/sh\necho 'TRAINPROBE {answer}'")


def test_the_tools_own_stands_in_where_the_first_on_the_path_has_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, own = (
        answering(tmp_path / "a" / "bin" / "python", torch=False),
        answering(tmp_path / "t" / "bin" / "python", torch=True),
    )
    monkeypatch.setattr(sys, "executable", str(own))
    environ = {"PATH": str(plain.parent)}
    one = find(None, (), environ)

    assert (one.path, one.chosen_by) == (str(own), "the Python of this tool")
    assert (
        one.note
        == f"{plain}, the first Python on PATH, has no torch: {own}, the Python of this tool, ran"
        " instead."
    )
    assert find(None, ["python", "train.py"], environ).path == str(plain), (
        "what the command names is not replaced"
    )
    make_program(plain, "#!/bin/sh\necho hello")
    assert "cannot be used" in find(None, (), environ).note


def test_a_tool_without_torch_takes_the_first_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pipx and uv install it: in an environment of its own."""
    job, own = (
        answering(tmp_path / "a" / "bin" / "python", torch=True),
        answering(tmp_path / "t" / "bin" / "python", torch=False),
    )
    monkeypatch.setattr(sys, "executable", str(own))
    active = {"PATH": str(job.parent), "VIRTUAL_ENV": str(tmp_path / "a")}
    other = {"PATH": str(job.parent), "VIRTUAL_ENV": str(tmp_path / "t")}

    assert (find(None, (), active).path, find(None, (), active).note) == (str(job), "")
    assert (
        find(None, (), other).note
        == f"{job} is the first Python on PATH, and is not the one of VIRTUAL_ENV={tmp_path / 't'}."
    )
    answering(job, torch=False)
    assert (
        find(None, (), active).path,
        find(None, (), active).reason.startswith(f"{job} has no torch"),
    ) == (str(job), True)


FOUND = {
    "version": "3.11.4",
    "torch_at": "/e/torch/__init__.py",
    "torch_is_package": True,
    "torch_version": "2.13.0+cpu",
    "found": {"torch": True, "numpy": False},
}


def test_a_cpu_build_of_torch() -> None:
    one = from_answer("/e/bin/python", {**FOUND, "torch_cuda": None, "nccl": False})

    assert (one.torch, one.cuda, one.gloo, one.nccl, one.reason, one.installed) == (
        "2.13.0+cpu",
        None,
        True,
        False,
        "",
        ("torch",),
    )


def test_no_torch_is_a_reason_and_not_an_error() -> None:
    one = from_answer("/e/bin/python", {"version": "3.11.4"})

    assert (one.torch, one.gloo) == (None, False)
    assert one.reason.startswith("/e/bin/python has no torch; install it there")


def test_a_file_called_torch_is_not_torch() -> None:
    one = from_answer(
        "/e/bin/python",
        {"version": "3.11.4", "torch_at": "/job/torch.py", "torch_is_package": False},
    )

    assert "/job/torch.py" in one.reason
    assert "is not PyTorch" in one.reason


def test_an_old_python_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"Python 3\.8\.10"):
        from_answer("/e/bin/python", {"version": "3.8.10"})
