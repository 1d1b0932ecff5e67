"""Which processes are an earlier run of the same program, which are another run, and who starts them again: on process tables made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.targets.proc_tree import ProcTree
from trainprobe.targets.earlier_runs import Found, Wanted, find, wanted_of
from trainprobe.targets.process_table import snapshot

PY = "/env/bin/python"
SPAWN = [PY, "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)", "--multiprocessing-fork"]
OWN = 900
SCRIPT = Wanted("script", "/job/train.py", "/job")


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    """Our own process is below an open terminal, as if somebody had typed the command."""
    made = ProcTree(tmp_path / "proc")
    made.add(50, 1, "sshd", start=2, session=50)
    made.add(60, 50, "-bash", start=3, session=60, terminal=34816)
    made.add(OWN, 60, [PY, "-m", "trainprobe", "diagnose", "--", "train.py"], start=90000, session=60, terminal=34816)
    return made


def look(tree: ProcTree, wanted: Wanted = SCRIPT) -> Found:
    return find(snapshot(tree.path), wanted, OWN, 1000)


def pids(found: Found) -> list[int]:
    return [row.seen.pid for row in found.earlier]


def test_orphans_of_a_double_fork_are_earlier_runs_grouped_by_their_start(tree: ProcTree) -> None:
    for number in range(19):
        tree.add(100 + number, 1, [PY, "train.py"], session=300 + number, group=300 + number, start=2000 + number)
    tree.add(200, 1, [PY, "/job/train.py"], session=400, group=400, start=40000)
    found = look(tree)
    assert pids(found) == [*range(100, 119), 200]
    assert [row.run for row in found.earlier] == [0] * 19 + [1]
    assert found.others == ()
    assert found.restarters == ()


def test_a_daemon_that_leads_its_own_session_below_the_init_is_an_earlier_run(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "train.py"], session=100)
    assert pids(look(tree)) == [100]


def test_what_a_subreaper_adopted_is_an_orphan_as_below_process_1(tree: ProcTree) -> None:
    tree.add(70, 60, ["keeper"], session=70)
    tree.add(100, 70, [PY, "train.py"], session=300)
    assert pids(look(tree)) == [100]


def test_a_launcher_that_was_killed_leaves_its_workers_in_its_own_terminal(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "train.py"], session=60, group=95, terminal=34816)
    assert pids(look(tree)) == [100]


@pytest.mark.parametrize(
    "command",
    [
        ["vim", "train.py"],
        ["grep", "-n", "loss", "train.py"],
        ["gdb", "-p", "7", "train.py"],
        [PY, "-m", "pytest", "train.py"],
        [PY, "other.py", "train.py"],
        ["tail", "-f", "/job/train.py"],
        ["py-spy", "record", "--", "python", "train.py"],
        [PY, "/elsewhere/train.py"],
    ],
)
def test_what_only_names_the_script_is_none(tree: ProcTree, command: list[str]) -> None:
    tree.add(100, 1, command, session=300)
    assert look(tree) == Found()


def test_another_users_run_is_none(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "train.py"], session=300, uid=1001)
    assert look(tree) == Found()


def test_our_own_family_and_what_is_younger_than_we_are_none(tree: ProcTree) -> None:
    tree.add(901, OWN, [PY, "train.py"], start=91000, session=901)
    tree.add(902, 1, [PY, "train.py"], start=92000, session=300)
    assert look(tree) == Found()


def test_a_run_below_an_open_terminal_is_another_run(tree: ProcTree) -> None:
    tree.add(80, 50, "-bash", session=80, terminal=34817)
    tree.add(100, 80, [PY, "train.py"], session=80, terminal=34817)
    tree.add(101, 100, [PY, "train.py"], session=80, terminal=34817)
    found = look(tree)
    assert found.earlier == ()
    assert [(one.seen.pid, "terminal of pid 80" in one.why) for one in found.others] == [(100, True), (101, True)]


def test_a_task_of_a_scheduler_is_another_run(tree: ProcTree) -> None:
    tree.add(80, 1, "slurmstepd: [77.0]", session=80, uid=0)
    tree.add(100, 80, [PY, "train.py"], session=100)
    found = look(tree)
    assert (found.earlier, [one.seen.pid for one in found.others]) == ((), [100])


def test_what_hangs_below_whoever_has_started_us_is_another_run(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path / "proc")  # a service that runs jobs for people, and no terminal anywhere
    tree.add(40, 1, "runner", start=2, session=40, cgroup="0::/system.slice/runner.service")
    tree.add(60, 40, ["bash", "-c", "work"], start=3, session=40)
    tree.add(OWN, 60, [PY, "-m", "trainprobe", "diagnose", "--", "train.py"], start=90000, session=40)
    tree.add(100, 60, [PY, "train.py"], session=40, cgroup="0::/system.slice/runner.service")
    found = look(tree)
    assert (found.earlier, found.restarters) == ((), ())
    assert "has us too" in found.others[0].why


def test_a_torchrun_agent_counts_with_all_below_it_parents_first(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "/env/bin/torchrun", "--nproc-per-node", "2", "--max-restarts", "3", "train.py", "--lr", "1"], session=300)
    tree.add(101, 100, [PY, "-u", "train.py", "--lr", "1"], session=101)
    tree.add(102, 101, [PY, "-u", "train.py", "--lr", "1"], session=101, name="pt_data_worker")
    tree.add(103, 101, SPAWN, session=101)
    found = look(tree)
    assert [(row.seen.pid, row.role) for row in found.earlier] == [(100, "launcher"), (101, "child"), (102, "worker"), (103, "worker")]
    assert [(one.kind, one.pid) for one in found.restarters] == [("launcher", 100)]


def test_spawned_workers_whose_run_is_gone_are_known_by_session_or_else_by_folder(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "train.py"], session=300)
    tree.add(101, 1, SPAWN, session=300, group=300, cwd="/elsewhere")
    tree.add(102, 1, SPAWN, session=310, group=310)
    tree.add(103, 1, SPAWN, session=320, group=320, cwd="/elsewhere")
    found = look(tree)
    assert [(row.seen.pid, row.sure) for row in found.earlier] == [(100, True), (101, True), (102, False)]


def test_a_loop_in_a_shell_that_nobody_answers_for_starts_it_again(tree: ProcTree, tmp_path: Path) -> None:
    tree.add(90, 1, ["bash", "-c", "while true; do python train.py; sleep 1; done"], session=90)
    found = look(tree)  # between two runs nothing but the loop lives
    assert (found.earlier, [(one.kind, one.pid) for one in found.restarters]) == ((), [("shell", 90)])
    tree.add(100, 90, [PY, "train.py"], session=90)
    found = look(tree)
    assert (pids(found), [(one.kind, one.pid) for one in found.restarters]) == ([100], [("shell", 90)])
    (tmp_path / "run.sh").write_text("until python train.py\ndo sleep 1\ndone\n")
    tree.add(91, 1, ["bash", str(tmp_path / "run.sh")], session=91)
    assert [one.pid for one in look(tree).restarters] == [90, 91]
    tree.add(92, 1, ["bash", "-c", "while true; do python other.py; done"], session=92)
    assert [one.pid for one in look(tree).restarters] == [90, 91]


def test_supervisors_cron_services_and_containers_start_it_again(tree: ProcTree) -> None:
    tree.add(70, 1, [PY, "/usr/bin/supervisord", "-n"], session=70)
    tree.add(71, 1, ["/usr/sbin/cron", "-f"], session=71, uid=0)
    tree.add(72, 71, ["/bin/sh", "-c", "python train.py"], session=72)
    tree.add(100, 70, [PY, "train.py"], session=100)
    tree.add(101, 72, [PY, "train.py"], session=72)
    tree.add(102, 1, [PY, "train.py"], session=102, cgroup="0::/user.slice/user-1000.slice/user@1000.service/app.slice/nightly.service")
    tree.add(103, 1, [PY, "train.py"], session=103, cgroup="0::/system.slice/train.service")
    tree.add(104, 1, [PY, "train.py"], session=104, cgroup=f"0::/system.slice/docker-{'ab' * 32}.scope")
    found = look(tree)
    assert pids(found) == [100, 101, 102, 103, 104]
    named = {(one.kind, one.name if one.pid == 0 else one.pid) for one in found.restarters}
    assert named == {("supervisor", 70), ("cron", 71), ("user-unit", "nightly.service"), ("unit", "train.service"), ("container", "ab" * 6)}


def test_an_orphaned_parent_is_named_as_who_may_start_the_next(tree: ProcTree) -> None:
    tree.add(90, 1, [PY, "watchdog.py"], session=300)
    tree.add(100, 90, [PY, "train.py"], session=300)
    found = look(tree)
    assert (pids(found), [(one.kind, one.pid) for one in found.restarters]) == ([100], [("parent", 90)])


def test_modules_and_code_count_in_their_own_folder_only(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "-m", "pkg.train"], session=300)
    tree.add(101, 1, [PY, "-m", "pkg.train"], session=301, cwd="/elsewhere")
    tree.add(102, 1, [PY, "-c", "import pkg; pkg.main()"], session=302)
    tree.add(103, 1, [PY, "-m", "torch.distributed.run", "-m", "pkg.train"], session=303)
    assert pids(look(tree, Wanted("module", "pkg.train", "/job"))) == [100, 103]
    assert pids(look(tree, Wanted("code", "import pkg; pkg.main()", "/job"))) == [102]


def test_what_a_command_runs() -> None:
    assert wanted_of(["torchrun", "train.py"], "/job", "/job/train.py") == SCRIPT
    assert wanted_of(["torchrun", "--nproc-per-node", "2", "-m", "pkg.train"], "/job") == Wanted("module", "pkg.train", "/job")
    assert wanted_of([PY, "-m", "pkg.train"], "/job") == Wanted("module", "pkg.train", "/job")
    assert wanted_of([PY, "-c", "1"], "/job") == Wanted("code", "1", "/job")
    assert wanted_of(["bash", "run.sh"], "/job") is None
