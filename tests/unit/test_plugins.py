"""Plugins: a real package adds a probe and a cause, and one that is broken is named and costs
nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from trainprobe import plugins
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts
from trainprobe.ladder.probes import usable
from trainprobe.waits import SuspectGroup

ROOT = Path(__file__).resolve().parents[2]
ACME = ROOT / "tests" / "plugins" / "acme_trainprobe"


def install(folder: Path) -> None:
    """Install the package as pip --no-deps --target does, without a network: its own back end
    builds the wheel, which is unpacked.
    """
    if importlib.util.find_spec("hatchling") is None:
        install_by_hand(folder)
        return
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(wheels)!r}))"
    built = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ACME,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    with zipfile.ZipFile(wheels / built.stdout.split()[-1]) as wheel:
        wheel.extractall(folder)


def install_by_hand(folder: Path) -> None:
    """What an installer leaves behind: the files, and the entry points of pyproject.toml as
    metadata.
    """
    tomllib = pytest.importorskip(
        "tomllib",
        reason="neither hatchling nor tomllib is here to read the plugin's pyproject.toml",
    )
    project = tomllib.loads((ACME / "pyproject.toml").read_text())["project"]
    shutil.copytree(ACME / "acme_trainprobe", folder / "acme_trainprobe")
    info = folder / f"acme_trainprobe-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))


def write_plugin(folder: Path, name: str, group: str, value: str, source: str = "") -> None:
    """Write the smallest installed package by hand: metadata with one entry point, and one
    module.
    """
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    if source:
        (folder / f"{name}_module.py").write_text(source)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("acme")
    install(folder)
    return folder


def run_python(code: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_the_package_adds_its_cause(acme: Path) -> None:
    code = (
        "from trainprobe import plugins; added = plugins.causes(); print([c.id for c in"
        " added.found], added.trouble)"
    )
    assert run_python(code, acme) == "['acme-licence-missing'] ()\n"


def test_what_is_installed_is_read_once_for_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(tmp_path, "first", plugins.CAUSES, "first_module")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = Mock(wraps=importlib.metadata.entry_points)
    monkeypatch.setattr(importlib.metadata, "entry_points", asked)
    groups = (plugins.CAUSES, plugins.FORMATS, plugins.COLLECTORS, plugins.CAUSES)
    found = [[entry.name for entry in plugins._entries(group)] for group in groups]
    assert ("first" in found[0], found[3], asked.call_count) == (True, found[0], 1)
    assert not {"first"} & {*found[1], *found[2]}


def test_the_package_adds_its_folder_of_probes_without_being_imported(acme: Path) -> None:
    code = (
        "import json, sys; from trainprobe import plugins; added ="
        " plugins.probe_folders();print(json.dumps([added.found, added.trouble,"
        " 'acme_trainprobe.probes.acme_licence' in sys.modules]))"
    )
    folders, trouble, imported = json.loads(run_python(code, acme))
    assert folders == [str(acme / "acme_trainprobe" / "probes")]
    assert trouble == []
    assert imported is False


def test_the_ladder_finds_the_probe(acme: Path) -> None:
    code = (
        "from trainprobe import plugins; from trainprobe.ladder.probes import find;print([(s.name,"
        " s.rung) for s in find(plugins.probe_folders().found) if s.name.startswith('acme')])"
    )
    assert run_python(code, acme) == "[('acme_licence', 15)]\n"


def test_the_catalogue_lists_the_cause_and_prints_its_page(acme: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{acme}{os.pathsep}{ROOT}"}
    for arguments, words in (
        ([], "Added by plugins"),
        (["acme-licence-missing"], "The solver finds no licence"),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "trainprobe", "causes", *arguments],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert words in ran.stdout


@pytest.mark.parametrize(("licence", "code", "answer"), [("", 10, "no"), ("here", 0, "yes")])
def test_the_probe_runs_alone(tmp_path: Path, licence: str, code: int, answer: str) -> None:
    path = tmp_path / "licence"
    if licence:
        path.write_text(licence)
    events = tmp_path / "events.jsonl"
    program = ACME / "acme_trainprobe" / "probes" / "acme_licence.py"
    environment = {**os.environ, "ACME_LICENCE": str(path), "TRAINPROBE_EVENTS": str(events)}
    ran = subprocess.run(
        [sys.executable, str(program)],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == code
    last = json.loads(events.read_text().splitlines()[-1])
    assert (last["event"], last["answer"]) == ("result", answer)


GOOD_CAUSE = """
from trainprobe.api import Cause
CAUSE = Cause(id={id!r}, title="t", means="m", telling="t", modes=("check",), weigh=lambda f, g: (), summary=lambda f, g: "s",
              fixes=lambda f, g: (), would_settle="w")
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise RuntimeError('no\\nsuch luck')", "RuntimeError: no such luck"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError"),
        ("CAUSE = 'words'", "it names a str, not a Cause"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_cause_that_does_not_load_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str
) -> None:
    write_plugin(tmp_path, "bad", plugins.CAUSES, "bad_module", source)
    monkeypatch.syspath_prepend(tmp_path)
    added = plugins.causes()
    sys.modules.pop("bad_module", None)
    assert added.found == ()
    (sentence,) = added.trouble
    assert sentence.startswith("The plugin bad of bad adds no cause: ")
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("package_that_is_not_there", "there is no module"),
        ("json:dumps", "TypeError"),
        ("zz_module:FOLDER", "is no folder"),
    ],
)
def test_probes_that_cannot_be_found_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    write_plugin(tmp_path, "zz", plugins.PROBES, value, "FOLDER = '/nowhere/at/all'")
    monkeypatch.syspath_prepend(tmp_path)
    added = plugins.probe_folders()
    sys.modules.pop("zz_module", None)
    assert added.found == ()
    (sentence,) = added.trouble
    assert sentence.startswith("The plugin zz of zz adds no probes: ")
    assert words in sentence


def test_an_id_that_is_taken_is_named_and_left_to_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, cause_id in (
        ("first", "same-name"),
        ("second", "same-name"),
        ("third", "rank-stuck"),
    ):
        write_plugin(
            tmp_path, name, plugins.CAUSES, f"{name}_module", GOOD_CAUSE.format(id=cause_id)
        )
    monkeypatch.syspath_prepend(tmp_path)
    added = plugins.causes(known={"rank-stuck"})
    for name in ("first", "second", "third"):
        sys.modules.pop(f"{name}_module", None)
    assert [cause.id for cause in added.found] == ["same-name"]
    assert added.trouble == (
        (
            "The plugin second of second adds no same-name: the plugin first of first has a cause"
            " of that name already."
        ),
        (
            "The plugin third of third adds no rank-stuck: trainprobe has a cause of that name"
            " already."
        ),
    )


def test_without_plugins_nothing_is_added() -> None:
    assert plugins.causes() == plugins.Added()
    assert plugins.probe_folders() == plugins.Added()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("# /// trainprobe\n# rung: [\n# ///\n", "cannot be used: it is not YAML"),
        ("# no header at all\n", "There is no probe in"),
        (
            "# /// trainprobe\n# name: host\n# rung: 11\n# question: Is it?\n# ///\n",
            "Two probes are called host",
        ),
    ],
)
def test_a_folder_that_breaks_the_rules_is_left_out_and_named(
    tmp_path: Path, source: str, words: str
) -> None:
    (tmp_path / "bad_probe.py").write_text(source)
    good = str(ACME / "acme_trainprobe" / "probes")
    kept, (sentence,) = usable((str(tmp_path), good))
    assert kept == (good,)
    assert sentence.startswith("The probes of a plugin are left out: ")
    assert words in sentence


@pytest.mark.torch
def test_probe_and_cause_meet_in_a_real_climb(acme: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{acme}{os.pathsep}{ROOT}",
        "ACME_LICENCE": str(tmp_path / "no-such-file"),
    }
    command = [
        sys.executable,
        "-m",
        "trainprobe",
        "diagnose",
        "--nproc",
        "1",
        "--only",
        "acme_licence",
        "--case",
        "case",
        "--json",
        "report.json",
    ]
    ran = subprocess.run(
        command,
        env=environment,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    report = json.loads((tmp_path / "report.json").read_text())
    first = report["causes"][0]
    assert (ran.returncode, report["verdict"], first["id"], first["named"]) == (
        1,
        "at-risk",
        "acme-licence-missing",
        True,
    ), ran.stderr
    assert f"{tmp_path / 'no-such-file'} is not there" in first["summary"]
    assert "export ACME_LICENCE=" in ran.stdout


BROKEN_CAUSE = """
from trainprobe.api import Cause, Weighing
def weigh(scene):
    yield Weighing(13, "source", "It looks like it.")
    raise ZeroDivisionError("in the middle")
CAUSE = Cause(id="broken-cause", title="A title", means="m", telling="t", modes=("check",), weigh=weigh, summary=lambda scene: 1 / 0,
              fixes=lambda scene: 1 / 0, would_settle="w", ranks=lambda scene: 1 / 0)
"""


def test_a_cause_that_raises_says_nothing_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(tmp_path, "broken", plugins.CAUSES, "broken_module", BROKEN_CAUSE)
    monkeypatch.syspath_prepend(tmp_path)
    added = plugins.causes()
    sys.modules.pop("broken_module", None)
    (cause,) = added.found
    scene = Scene(Facts(), SuspectGroup("c", "p", (2,), "failed-first", "", "check"))
    assert cause.weigh(scene) == ()
    assert cause.summary(scene) == "A title"
    assert cause.fixes_for(scene) == ()
    assert cause.ranks(scene) == (2,)
    assert cause.weigh(scene) == ()
    assert added.failures == [
        "The cause broken-cause of a plugin failed in its weigh: ZeroDivisionError: in the middle.",
        (
            "The cause broken-cause of a plugin failed in its summary: ZeroDivisionError: division"
            " by zero."
        ),
        (
            "The cause broken-cause of a plugin failed in its fixes: ZeroDivisionError: division by"
            " zero."
        ),
        (
            "The cause broken-cause of a plugin failed in its ranks: ZeroDivisionError: division by"
            " zero."
        ),
    ]
