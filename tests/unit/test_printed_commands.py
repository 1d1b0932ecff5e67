"""Every command that a report or a page prints works as it is printed: it parses, and it
addresses nobody who is gone by then.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from tests.causes.fixtures import Fixture, everything
from trainprobe import causes, pipelines
from trainprobe.causes.commands import again, job, shell
from trainprobe.causes.priors import load_priors
from trainprobe.causes.scene import Scene
from trainprobe.checks.catalogue import catalogue
from trainprobe.cli.app import app, command_line, command_names
from trainprobe.errors import UsageError
from trainprobe.facts import Facts, HostCheck, Job, Plan, RankException, Reach, Rung
from trainprobe.ladder.probes import find
from trainprobe.model.diagnosis import Fix
from trainprobe.ranking import rank_group
from trainprobe.report.lines import _COMMAND
from trainprobe.waits import SuspectGroup

ROOT = Path(__file__).resolve().parents[2]
BUILT = {cause.id: cause for cause in causes.built()}
FIRES = [fixture for fixture in everything() if fixture.kind == "fires"]
PLACEHOLDER = re.compile(r"<([A-Za-z][\w.:]*)>")
COMMENT = re.compile(r"   (?:\(.*\)|# .*)$")
VALUES = {"PID": "4711", "JOB": "4711", "N": "2"}
# Programs of Linux, of the schedulers, and of Python's world that the reports send somebody to.
KNOWN = frozenset(
    [
        "#",
        "noqa:",
        "SIM905",
        "-",
        "a",
        "line",
        "of",
        "names",
        "is",
        "read,",
        "a",
        "list",
        "of",
        "them",
        "is",
        "not",
        "accelerate",
        "awk",
        "bash",
        "cat",
        "chmod",
        "chrt",
        "conda",
        "cuda-gdb",
        "dd",
        "df",
        "dmesg",
        "docker",
        "du",
        "echo",
        "env",
        "ethtool",
        "export",
        "find",
        "flock",
        "free",
        "fuser",
        "gdb",
        "getent",
        "grep",
        "head",
        "ibstat",
        "ip",
        "journalctl",
        "kill",
        "ldd",
        "ls",
        "lsof",
        "lspci",
        "make",
        "mount",
        "mv",
        "nc",
        "ninja",
        "nvcc",
        "nvidia-smi",
        "nvme",
        "ping",
        "pip",
        "ps",
        "py-spy",
        "python",
        "quota",
        "rm",
        "sacct",
        "sbatch",
        "scancel",
        "scontrol",
        "srun",
        "ss",
        "strace",
        "stat",
        "sudo",
        "sysctl",
        "systemctl",
        "tail",
        "taskset",
        "timeout",
        "top",
        "torchrun",
        "tr",
        "trainprobe",
        "ulimit",
        "uname",
        "unset",
        "uv",
    ]
)

PLAN = Plan(
    form="launch",
    nproc=2,
    world_size=2,
    device="cpu",
    argv=("my train.py", "--text", "a 'b' $HOME", "--max_train_samples", "{rows}"),
    interpreter_path="/envs/my job/bin/python",
    interpreter_chosen_by="--python",
    imports=("torch", "datasets"),
    rows=(10, 100),
    dataset="train.py:data",
    collate="train.py:stack",
    batch_size=4,
    workers=(0, 2),
    model="net.py:make",
    sample="net.py:batch",
    fuzz=3,
    planned={"rows": 1000, "ranks": 8},
    config="my settings.yaml",
)


def asked(fixture: Fixture) -> Fixture:
    """The same case, from a request with everything that a verification must repeat."""
    plans = fixture.facts.of(Plan)
    others = [fact for fact in fixture.facts.all if not isinstance(fact, Plan)]
    return replace(
        fixture, facts=Facts([*others, replace(PLAN, cell=plans[0].cell if plans else "")])
    )


def fixes() -> Iterator[tuple[str, Fix]]:
    for fixture in FIRES:
        for one in (fixture, asked(fixture)):
            for fix in BUILT[fixture.cause_id].fixes_for(one.scene):
                verify = fix.verify or again(one.scene, steps=fix.steps)
                yield fixture.cause_id, replace(fix, verify=verify)


def lines() -> set[str]:
    """What is advised anywhere: also what would settle a cause, and what the node checks say,
    which are sentences with commands in them.
    """
    return (
        typed()
        | {cause.would_settle for cause in BUILT.values()}
        | {check.fix for check in catalogue().values() if check.fix}
    )


def typed() -> set[str]:
    """Steps and verifications of all causes."""
    return {line for _, fix in fixes() for line in (*fix.steps, fix.verify)}


def bare(line: str) -> str:
    """Without its comment, the host before it, and with something in the place of each
    placeholder.
    """
    line = re.sub(
        r"^(?:on [\w.-]+|while it hangs|when it has hung|or while it hangs, on each node|start it"
        r" again): ",
        "",
        COMMENT.sub("", line),
    )
    return PLACEHOLDER.sub(lambda match: VALUES.get(match[1], match[1].lower()), line)


def of_the_tool(line: str) -> list[str]:
    return [
        part.strip()
        for part in re.split(r"; |&& ", bare(line))
        if part.strip().startswith("trainprobe ")
    ]


def on_pages() -> set[str]:
    """The command lines in the blocks of the README and of all pages, but for those that use what a
    guide adds.
    """
    added, found = added_by_the_guides(), set()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for block in re.findall(
            r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            whole = re.sub(r" \\\n\s*", " ", block)
            found |= {
                line.removeprefix("$ ")
                for line in whole.splitlines()
                if re.match(r"(?:\$ )?trainprobe \w", line)
                and not added & set(re.findall(r"[\w.]+", line))
            }
    return found


def added_by_the_guides() -> set[str]:
    """The names of the files that the guides add, step by step, and that are not in the tree."""
    guides = (ROOT / "docs" / "guides").glob("*.md")
    paths = {
        Path(path)
        for guide in guides
        for path in re.findall(r"\b[\w/]+/\w+\.py", guide.read_text(encoding="utf-8"))
    }
    return {path.stem for path in paths if not (ROOT / path).exists()}


class Accepted(Exception):  # noqa: N818 - what a parsed command line ends in
    """The command line was understood."""


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    def accept(*_: object, **__: object) -> None:
        raise Accepted

    for name in ("diagnose", "attach", "ready", "explain"):
        monkeypatch.setattr(pipelines, name, accept)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.yaml").write_text("{}")
    (tmp_path / "my settings.yaml").write_text("{}")
    group = typer.main.get_command(app)

    def parsed(line: str) -> None:
        words = shlex.split(line, comments=True)[1:]
        if not words or words[0] in ("--help", "--version"):
            return
        assert words[0] in command_names(), line
        if words[0] in ("diagnose", "attach", "explain") or (
            words[0] == "ready" and not {"--sbatch", "--slot"} & set(words)
        ):
            with pytest.raises(Accepted):
                command_line(words)
        else:
            group.get_command(typer.Context(group), words[0]).make_context(words[0], words[1:])  # type: ignore[attr-defined]
        known = {spec.name for spec in find(())}
        only = [words[at + 1] for at, word in enumerate(words) if word == "--only"]
        assert (
            "--probe-dir" in words or {name for names in only for name in names.split(",")} <= known
        ), line

    return parsed


def test_the_command_line_takes_every_command_that_is_advised(parse: Callable[[str], None]) -> None:
    told = {part for line in lines() for part in of_the_tool(line)}
    assert len(told) > 20
    for line in sorted(told):
        try:
            parse(
                re.sub(r":? (?:how|do|does|is|with fewer|with --|there$).*", "", line)
                if line not in VERIFIES
                else line
            )
        except UsageError as error:
            pytest.fail(f"{line}: {error}")


VERIFIES = {fix.verify for _, fix in fixes()}


def test_the_command_line_takes_every_command_of_the_pages(parse: Callable[[str], None]) -> None:
    told = on_pages()
    assert len(told) > 20
    for line in sorted(told):
        whole = (
            PLACEHOLDER.sub("x", line)
            .replace("…", "x")
            .split(" | ")[0]
            .split(" > ")[0]
            .split(" || ")[0]
        )
        try:
            parse(re.sub(r"   \(.*\)$", "", whole))
        except UsageError as error:
            pytest.fail(f"{line}: {error}")


def test_a_placeholder_stands_in_angle_brackets() -> None:
    loose = re.compile(
        r"(?:--pid|kill|attach|/proc/|--sbatch|explain|nodename=|-p)"
        r" ?(?:PID|OUTPUT|SCRIPT|NODE|JOB)\b"
    )
    assert [
        line for line in sorted(lines()) if loose.search(line.replace("/proc/PID/stack names", ""))
    ] == []


def test_a_shell_reads_every_command(tmp_path: Path) -> None:
    files = {}
    for number, line in enumerate(
        line
        for line in typed()
        if _COMMAND.match(line) and not re.search(r"…|\.\.\.|   or   ", line)
    ):
        files[f"{number}.sh"] = line
        (tmp_path / f"{number}.sh").write_text(bare(line) + "\n")
    done = subprocess.run(
        ["bash", "-c", 'for f in *.sh; do bash -n "$f" 2>/dev/null || echo "$f"; done'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [files[name] for name in done.stdout.split()] == []


def test_the_programs_that_are_named_are_known_ones() -> None:
    strange = {}
    for line in sorted(line for line in typed() if _COMMAND.match(line) and "…" not in line):
        for part in re.split(
            r"; | \|\|? | && ", re.sub(r"'[^']*'|\"[^\"]*\"|\$\([^)]*\)", "q", bare(line))
        ):
            words = [word for word in part.split() if not re.match(r"[A-Z_][A-Z0-9_]*=", word)]
            program = words[0].rpartition("/")[2] if words else "echo"
            if re.fullmatch(r"[a-z][a-z-]*", program) and program not in KNOWN | {"q", "command"}:
                strange[program] = line
    assert strange == {}


def test_nothing_that_a_step_has_ended_is_looked_at_by_its_verification() -> None:
    for cause_id, fix in fixes():
        ended = {
            pid
            for step in fix.steps
            for pids in re.findall(r"\bkill(?: -(?!CONT)\w+)*((?: \d+)+)", step)
            for pid in pids.split()
        }
        looked = set(re.findall(r"(?:trainprobe attach |--pid |/proc/)(\d+)", fix.verify))
        assert not ended & looked, (cause_id, fix)


def test_a_live_job_that_a_step_ends_or_changes_is_found_again_without_its_pid() -> None:
    group = SuspectGroup("job", "", (0,), "stuck-inside", "it stands", "hang", hosts=("n1",))
    scene = Scene(
        Facts([Job(cell="job", launcher="torchrun", launcher_pid=40, world_size=2)]), group
    )
    assert again(scene, steps=("kill 40",)) == "trainprobe attach   # once the job runs again"
    assert (
        again(scene, steps=("move it into a function",))
        == "trainprobe attach   # once the job runs again"
    )
    assert again(scene, steps=("kill 41",)) == "trainprobe attach 40"
    assert again(scene, steps=("kill -CONT 40",)) == "trainprobe attach 40"
    assert again(scene) == "trainprobe attach 40"


def test_a_job_of_the_scheduler_is_another_one_when_it_runs_again() -> None:
    reach = Reach(by="slurm", job="4711", command="trainprobe attach --slurm 4711 --bundle")
    scene = Scene(
        Facts([reach]), SuspectGroup("job", "", (0,), "stuck-inside", "it stands", "hang")
    )
    assert (
        again(scene, steps=("scancel 4711",))
        == "trainprobe attach --slurm <JOB> --bundle   # once the job runs again"
    )
    assert (
        again(scene, steps=("py-spy dump --pid 40",)) == "trainprobe attach --slurm 4711 --bundle"
    )


def test_a_verification_asks_again_what_was_asked() -> None:
    group = SuspectGroup(
        "user_script@2", "user_script", (0,), "failed-first", "it ended", "crash", world_size=2
    )
    scene = Scene(Facts([replace(PLAN, rows=(), argv=PLAN.argv[:3])]), group)
    words = "--only user_script --config 'my settings.yaml' --planned rows=1000,ranks=8"
    command = """-- 'my train.py' --text 'a '"'"'b'"'"' $HOME'"""
    assert (
        again(scene)
        == f"trainprobe diagnose --python '/envs/my job/bin/python' --nproc 2 {words} {command}"
    )
    assert job(scene).startswith(
        "'/envs/my job/bin/python' -m torch.distributed.run --nproc-per-node 2 'my train.py'"
    )
    assert (
        shell(["torchrun", "--nproc-per-node", "{ranks}", "a b"])
        == "torchrun --nproc-per-node {ranks} 'a b'"
    )


def test_ranks_on_gpus_are_verified_on_gpus() -> None:
    group = SuspectGroup(
        "train_step@8", "train_step", (0,), "failed-first", "it ended", "crash", world_size=8
    )
    scene = Scene(Facts([Plan(nproc=8, world_size=8, device="cuda", gpus=8)]), group)
    assert again(scene) == "trainprobe diagnose --gpus 8 --only train_step"


def test_the_rung_that_saw_the_cause_is_asked_too() -> None:
    """An address space that is limited is seen by the host's rung alone; the script says only
    that memory could not be had.
    """
    facts = Facts(
        [
            Plan(
                nproc=1,
                world_size=1,
                form="launch",
                argv=("train.py",),
                probes=("host", "user_script"),
            ),
            Rung(("E1",), "host@1", rung=10, probe="host", outcome="passed"),
            HostCheck(
                ("E2",), "host@1", name="lim.as", status="warn", says="Limit as: soft 9216000000"
            ),
            Rung(("E3",), "user_script@1", rung=100, probe="user_script", outcome="crashed"),
            RankException(
                ("E4",),
                "user_script@1",
                0,
                type="RuntimeError",
                message=(
                    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 17179869184"
                    " bytes"
                ),
            ),
        ]
    )
    group = SuspectGroup(
        "user_script@1", "user_script", (0,), "failed-first", "it ended", "crash", world_size=1
    )
    placed = {one.id: one for one in rank_group(facts, group, causes.built(), load_priors()).placed}
    assert (
        placed["address-space-limit"].fixes[1].verify
        == "trainprobe diagnose --nproc 1 --only host,user_script -- train.py"
    )
