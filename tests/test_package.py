"""What is shipped: the wheel, the source distribution, and the programs that make the
environment.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


def load(name: str) -> ModuleType:
    """Load a program of .ci/ as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


def test_the_wheel_carries_probes_inside_the_package_and_nowhere_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    probes = {path.name for path in (ROOT / "probes").glob("*.py")}
    assert {f"trainprobe/_probes/{name}" for name in probes} <= set(names)
    assert "trainprobe/_probes/_witness/sitecustomize.py" in names
    demos = {path.name for path in (ROOT / "demos").glob("*.py")}
    assert {f"trainprobe/_demos/{name}" for name in demos} <= set(names)
    ours = [name for name in names if ".dist-info/" not in name]
    (page,) = [name for name in ours if ".data/" in name]
    assert page.endswith(".data/data/share/man/man1/trainprobe.1")
    assert {name.split("/")[0] for name in ours if name != page} == {"trainprobe"}
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "trainprobe").rglob("*.yaml")}
    assert data <= set(names)


def test_the_source_distribution_builds_both_again_byte_for_byte(
    built: Path, tmp_path: Path
) -> None:
    (archive,) = built.glob("*.tar.gz")
    subprocess.run(
        ["tar", "--extract", "--file", str(archive), "--directory", str(tmp_path)], check=True
    )  # tarfile's filter is newer than 3.10
    (unpacked,) = tmp_path.iterdir()
    again = tmp_path / "again"
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(again)]
    subprocess.run(build, cwd=unpacked, check=True, capture_output=True, timeout=120)
    first = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built.iterdir()}
    second = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in again.iterdir()}
    assert first == second
    assert {Path(name).suffix for name in first} == {".whl", ".gz"}


def test_the_container_file_copies_what_the_wheel_is_built_from(
    built: Path, tmp_path: Path
) -> None:
    copied = re.findall(
        r"^COPY (?!--from)(.+) /source/\S*$",
        (ROOT / "Containerfile").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    for name in " ".join(copied).split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    again = tmp_path / "again"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(again)]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,), (same,) = built.glob("*.whl"), again.glob("*.whl")
    assert wheel.read_bytes() == same.read_bytes()


def test_the_source_distribution_has_no_recordings(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    assert archive.stat().st_size < 3_000_000
    listed = subprocess.run(
        ["tar", "--list", "--file", str(archive)], check=True, capture_output=True, text=True
    ).stdout.split()
    folders = {name.split("/")[1] for name in listed}
    assert {"trainprobe", "probes", "demos", "docs", "README.md", "LICENSE"} <= folders
    assert not {"tests", ".ci", ".venv"} & folders


def test_pip_is_found_in_a_plain_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Debian without ensurepip and without any pip fetches pip's wheel from the index that pip
    is configured with.
    """
    content = b"a wheel"
    page = tmp_path / "simple" / "pip"
    page.mkdir(parents=True)
    (page / "pip-9.9-py3-none-any.whl").write_bytes(content)
    right = hashlib.sha256(content).hexdigest()
    links = [
        f'<a href="pip-9.9-py3-none-any.whl#sha256={right}">9.9</a>',
        '<a href="pip-9.8-py3-none-any.whl">9.8</a>',
    ]
    (page / "index.html").write_text("\n".join(links))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    wheel = load("fetch_pip").fetch("pip==9.9", tmp_path)
    assert wheel.read_bytes() == content


def test_a_pip_that_is_not_what_its_index_says_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "simple" / "pip"
    page.mkdir(parents=True)
    (page / "pip-9.9-py3-none-any.whl").write_bytes(b"another wheel")
    (page / "index.html").write_text(
        f'<a href="pip-9.9-py3-none-any.whl#sha256={"0" * 64}">9.9</a>'
    )
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    with pytest.raises(SystemExit, match="sha256 differs"):
        load("fetch_pip").fetch("pip==9.9", tmp_path)


def test_pins_name_the_minor_versions_only_where_they_differ() -> None:
    load("environment")
    merged = load("resolve").merged(
        {10: {"a": "1", "b": "1"}, 11: {"a": "1", "b": "2"}, 12: {"a": "1", "b": "2", "c": "3"}}
    )
    assert merged.splitlines()[1:] == [
        "a==1",
        'b==1 ; python_version < "3.11"',
        'b==2 ; python_version >= "3.11"',
        'c==3 ; python_version >= "3.12"',
    ]


def test_the_pins_hold_every_dependency() -> None:
    pinned = load("environment").pinned
    for name in ("typer", "rich", "pyyaml", "psutil", "nvidia-ml-py", "py-spy", "pip", "hatchling"):
        assert "==" in pinned("run")[name]
    for name in ("pytest", "ruff", "mypy", "import-linter"):
        assert "==" in pinned("dev")[name]
    assert set(pinned("build")) >= {"hatchling", "pathspec", "pluggy"}
    assert set(pinned("site")) >= {"mkdocs", "mkdocs-material", "pymdown-extensions"}
    assert all("==" in line for kind in ("build", "site") for line in pinned(kind).values())


@pytest.mark.parametrize("kind", ["run", "dev"])
def test_each_pin_is_locked_to_the_hashes_of_its_files(kind: str) -> None:
    environment = load("environment")
    text = environment.LOCKED[kind].read_text()
    entries = [
        entry.split(" --hash=sha256:")
        for entry in text.replace(" \\\n    --hash", " --hash").splitlines()[1:]
    ]
    pins = environment.PINS[kind].read_text().splitlines()
    assert [pin for pin, *_ in entries] == [line for line in pins if not line.startswith("#")]
    assert all(hashes and all(len(each) == 64 for each in hashes) for _, *hashes in entries)


def test_hashes_are_those_of_the_files_that_a_supported_python_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "simple" / "a-b"
    page.mkdir(parents=True)
    files = {
        "a_b-1.0-py3-none-any.whl": "1",
        "a_b-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl": "2",
        "a_b-1.0.tar.gz": "3",
        "a_b-1.0-cp311-cp311-win_amd64.whl": "4",
        "a_b-1.0-cp315-cp315-manylinux_2_17_x86_64.whl": "5",
        "a_b-1.0.1-py3-none-any.whl": "6",
    }
    (page / "index.html").write_text(
        "".join(f'<a href="{name}#sha256={sign * 64}">x</a>' for name, sign in files.items())
    )
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    load("environment")
    load("fetch_pip")
    assert load("resolve").locked('a-b==1.0 ; python_version < "3.11"\n').splitlines()[1:] == [
        'a-b==1.0 ; python_version < "3.11" \\',
        f"    --hash=sha256:{'1' * 64} \\",
        f"    --hash=sha256:{'2' * 64} \\",
        f"    --hash=sha256:{'3' * 64}",
    ]
