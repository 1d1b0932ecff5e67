from __future__ import annotations

import py_compile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.probes.conftest import ProbeRun, RunProbe


def status(done: ProbeRun, name: str) -> list[str]:
    return [one["status"] for one in done.events if one.get("check") == name]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text("import json\n")
    return folder


def test_nothing_is_wrong_in_an_empty_folder(run_probe: RunProbe, job: Path) -> None:
    done = run_probe("environment", "--script", str(job / "train.py"), "--imports", "yaml,json")
    assert status(done, "py.shadow") == ["ok"]
    assert status(done, "py.bytecode") == ["ok"]
    assert status(done, "py.python") == ["ok"]


def test_an_interpreter_without_torch(run_probe: RunProbe) -> None:
    done = run_probe("environment", flags=("-S",))
    assert (done.exit_code, status(done, "py.torch")) == (11, ["unknown"])
    assert "has no torch" in done.output


def fake_torch(folder: Path, version_text: str) -> Mapping[str, str]:
    package = folder / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it must not be imported')\n")
    (package / "version.py").write_text(version_text)
    return {"PYTHONPATH": str(folder / "site")}


def test_versions_are_read_and_torch_is_not_imported(run_probe: RunProbe, tmp_path: Path) -> None:
    env = fake_torch(
        tmp_path,
        "from typing import Optional\n__version__ = '2.9.9+cu128'\ncuda: Optional[str] ="
        " '12.8'\nhip: Optional[str] = None\n",
    )
    done = run_probe("environment", flags=("-S",), env=env)
    assert "torch 2.9.9+cu128, built for CUDA 12.8" in done.output
    assert status(done, "py.torch") == ["ok"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("random.py", ["fail"]),
        ("yaml/__init__.py", ["warn"]),
        ("yaml/readme.txt", ["ok"]),
        ("notes.py", ["ok"]),
        ("test/__init__.py", ["ok"]),
    ],
)
def test_what_stands_before_the_real_module(
    name: str, expected: list[str], run_probe: RunProbe, job: Path
) -> None:
    (job / name).parent.mkdir(exist_ok=True)
    (job / name).write_text("")
    done = run_probe("environment", "--script", str(job / "train.py"), "--imports", "yaml,json")
    assert status(done, "py.shadow") == expected, done.output


def test_bytecode_that_python_runs_though_the_source_has_changed(
    run_probe: RunProbe, job: Path
) -> None:
    module = job / "layers.py"
    module.write_text("width = 1\n")
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert status(run_probe("environment", "--script", str(job / "train.py")), "py.bytecode") == [
        "ok"
    ]
    module.write_text("width = 2\n")
    assert status(run_probe("environment", "--script", str(job / "train.py")), "py.bytecode") == [
        "warn"
    ]  # nobody imports it
    (job / "train.py").write_text("import layers\n")
    done = run_probe("environment", "--script", str(job / "train.py"))
    assert status(done, "py.bytecode") == ["fail"]


def test_bytecode_that_is_made_anew_is_harmless(run_probe: RunProbe, job: Path) -> None:
    module = job / "layers.py"
    module.write_text("width = 1\n")
    py_compile.compile(str(module))
    module.write_text("width = 1000\n")
    assert status(run_probe("environment", "--script", str(job / "train.py")), "py.bytecode") == [
        "ok"
    ]


def test_bytecode_without_a_source(run_probe: RunProbe, job: Path) -> None:
    module = job / "gone.py"
    module.write_text("width = 1\n")
    py_compile.compile(str(module), cfile=str(job / "gone.pyc"))
    module.unlink()
    assert status(run_probe("environment", "--script", str(job / "train.py")), "py.bytecode") == [
        "warn"
    ]


def test_what_the_script_imports_is_looked_up_and_not_run(run_probe: RunProbe, job: Path) -> None:
    (job / "mine.py").write_text("raise SystemExit('it must not be imported')\n")
    script = str(job / "train.py")

    def found(needed: str, path: str = script) -> ProbeRun:
        env = {"TRAINPROBE_NEEDED_MODULES": needed, "TRAINPROBE_OPTIONAL_MODULES": "json,nix"}
        env["TRAINPROBE_SLOT"] = "step"
        return run_probe("environment", "--script", path, env=env)

    assert status(found("yaml,mine"), "py.modules") == ["ok"]
    done = found("yaml,mine,no_such_module")
    (row,) = [one for one in done.events if one.get("check") == "py.modules"]
    assert (row["status"], row["value"]) == ("fail", ["no_such_module"])
    compared = {one["name"]: one["value"] for one in done.events if one.get("event") == "value"}
    assert compared == {"module.json": "found", "module.nix": "missing"}
    assert status(found("yaml", str(job / "gone.py")), "py.modules") == ["fail"]
