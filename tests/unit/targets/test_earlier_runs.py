"""Which processes are an earlier run of the same program, which are another run, and who starts
them again: on process tables made by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.targets.proc_tree import ProcTree
from trainprobe.targets.earlier_runs import Found, Wanted, find, wanted_of
from trainprobe.targets.process_table import snapshot

PY = "/env/bin/python"
SPAWN = [
    PY,
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
    "--multiprocessing-fork",
]
TRACKER = [PY, "-c", "from multiprocessing.resource_tracker import main;main(3)"]
OWN = 900
SCRIPT = Wanted("script", "/job/train.py", "/job")


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    """Our own process is below an open terminal, as if somebody had typed the command."""
    made = ProcTree(tmp_path / "proc")
    made.add(50, 1, "sshd", start=2, session=50)
    made.add(60, 50, "-bash", start=3, session=60, terminal=34816)
    made.add(
        OWN,
        60,
        [PY, "-m", "trainprobe", "diagnose", "--", "train.py"],
        start=90000,
        session=60,
        terminal=34816,
    )
    return made


def look(tree: ProcTree, wanted: Wanted = SCRIPT) -> Found:
    return find(snapshot(tree.path), wanted, OWN, 1000)


def pids(found: Found) -> list[int]:
    return [row.seen.pid for row in found.earlier]


def test_orphans_of_a_double_fork_are_earlier_runs_grouped_by_their_start(tree: ProcTree) -> None:
    for number in range(19):
        tree.add(
            100 + number,
            1,
            [PY, "train.py"],
            session=300 + number,
            group=300 + number,
            start=2000 + number,
        )
    tree.add(200, 1, [PY, "/job/train.py"], session=400, group=400, start=40000)
    found = look(tree)
    assert pids(found) == [*range(100, 119), 200]
    assert [row.run for row in found.earlier] == [0] * 19 + [1]
    assert found.others == ()
    assert found.restarters == ()


def test_a_daemon_that_leads_its_own_session_below_the_init_is_an_earlier_run(
    tree: ProcTree,
) -> None:
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
    assert [(one.seen.pid, "terminal of pid 80" in one.why) for one in found.others] == [
        (100, True),
        (101, True),
    ]


def test_a_task_of_a_scheduler_is_another_run(tree: ProcTree) -> None:
    tree.add(80, 1, "slurmstepd: [77.0]", session=80, uid=0)
    tree.add(100, 80, [PY, "train.py"], session=100)
    found = look(tree)
    assert (found.earlier, [one.seen.pid for one in found.others]) == ((), [100])


def test_what_hangs_below_whoever_has_started_us_is_another_run(tmp_path: Path) -> None:
    tree = ProcTree(
        tmp_path / "proc"
    )  # a service that runs jobs for people, and no terminal anywhere
    tree.add(40, 1, "runner", start=2, session=40, cgroup="0::/system.slice/runner.service")
    tree.add(60, 40, ["bash", "-c", "work"], start=3, session=40)
    tree.add(
        OWN, 60, [PY, "-m", "trainprobe", "diagnose", "--", "train.py"], start=90000, session=40
    )
    tree.add(100, 60, [PY, "train.py"], session=40, cgroup="0::/system.slice/runner.service")
    found = look(tree)
    assert (found.earlier, found.restarters) == ((), ())
    assert "has us too" in found.others[0].why


def test_a_torchrun_agent_counts_with_all_below_it_parents_first(tree: ProcTree) -> None:
    tree.add(
        100,
        1,
        [
            PY,
            "/env/bin/torchrun",
            "--nproc-per-node",
            "2",
            "--max-restarts",
            "3",
            "train.py",
            "--lr",
            "1",
        ],
        session=300,
    )
    tree.add(101, 100, [PY, "-u", "train.py", "--lr", "1"], session=101)
    tree.add(102, 101, [PY, "-u", "train.py", "--lr", "1"], session=101, name="pt_data_worker")
    tree.add(103, 101, SPAWN, session=101)
    found = look(tree)
    assert [(row.seen.pid, row.role) for row in found.earlier] == [
        (100, "launcher"),
        (101, "child"),
        (102, "worker"),
        (103, "worker"),
    ]
    assert [(one.kind, one.pid) for one in found.restarters] == [("launcher", 100)]


def test_spawned_workers_whose_run_is_gone_are_known_by_session_or_else_by_folder(
    tree: ProcTree,
) -> None:
    tree.add(100, 1, [PY, "train.py"], session=300)
    tree.add(101, 1, SPAWN, session=300, group=300)
    tree.add(102, 1, SPAWN, session=310, group=310)
    tree.add(103, 1, SPAWN, session=320, group=320, cwd="/elsewhere")
    found = look(tree)
    assert [(row.seen.pid, row.sure) for row in found.earlier] == [
        (100, True),
        (101, True),
        (102, False),
    ]


def test_a_shared_group_is_no_sign_in_another_folder_unless_the_run_leads_it(
    tree: ProcTree,
) -> None:
    tree.add(100, 1, [PY, "train.py"], session=300, group=300)
    tree.add(
        101, 1, SPAWN, session=300, group=300, cwd="/elsewhere"
    )  # one script has started both, and is gone
    tree.add(110, 1, [PY, "train.py"], session=110, group=110)
    tree.add(
        111, 1, SPAWN, session=110, group=110, cwd="/job/outputs"
    )  # the run has gone into a folder of its own
    assert [(row.seen.pid, row.sure) for row in look(tree).earlier] == [
        (100, True),
        (110, True),
        (111, True),
    ]


def test_what_a_killed_launcher_spawned_is_found_with_all_below_it(tree: ProcTree) -> None:
    tree.add(300, 1, TRACKER, session=299, group=299)
    for rank in (301, 302):
        tree.add(rank, 1, SPAWN, session=299, group=299)
        for number in range(8):
            tree.add(rank * 10 + number, rank, SPAWN, session=299, group=299)
    tree.add(5000, 3010, ["/bin/cat"], session=299, group=299)
    found = look(tree)
    assert {(row.run, row.sure) for row in found.earlier} == {(0, False)}
    assert sorted(pids(found)) == [300, 301, 302, *range(3010, 3018), *range(3020, 3028), 5000]
    roles = {row.seen.pid: row.role for row in found.earlier}
    assert (roles[300], roles[301], roles[3010], roles[5000]) == (
        "tracker",
        "worker",
        "worker",
        "child",
    )


def test_two_lost_groups_are_two_runs(tree: ProcTree) -> None:
    tree.add(301, 1, SPAWN, session=299, group=299, start=2000)
    tree.add(302, 1, SPAWN, session=309, group=309, start=40000)
    tree.add(303, 1, TRACKER, session=299, group=299, start=2001)
    assert [(row.seen.pid, row.run) for row in look(tree).earlier] == [(301, 0), (303, 0), (302, 1)]


def test_workers_of_another_program_that_still_lives_are_none(tree: ProcTree) -> None:
    tree.add(299, 1, [PY, "serve.py"], session=299, group=299)
    tree.add(300, 299, SPAWN, session=299, group=299)
    tree.add(301, 1, SPAWN, session=299, group=299)
    assert look(tree) == Found()


@pytest.mark.parametrize(
    ("text", "cwd", "claimed"),
    [
        ("while true; do python train.py; done", "/job", True),
        ("while true; do python train.py; done", "/queue", False),
        ("while true; do python /job/train.py; done", "/queue", True),
        ("while true; do python /other/train.py; done", "/job", False),
        ("while true; do cd /job && python train.py; done", "/queue", True),
        ("while true; do (cd /other && python train.py); done", "/job", False),
        ("while true; do (cd /other; make); python train.py; done", "/job", True),
        ("for folder in a b; do cd $folder; python train.py; done", "/job", False),
        ('for folder in a b; do python "$folder/train.py"; done', "/job", False),
        ('cd "$(dirname "$0")"\nuntil python -u "train.py" --lr 1\ndo sleep 1\ndone', "/job", True),
        ("cd $(dirname $0); while :; do python ./train.py; done", "/job", True),
        ("while true; do # python train.py\nsleep 9; done", "/job", False),
        ("while true; do python retrain.py; done", "/job", False),
        ('while true; do python "$PWD/train.py"; done', "/job", True),
    ],
)
def test_a_loop_is_known_by_the_file_that_it_starts_and_not_by_its_name(
    tree: ProcTree, text: str, cwd: str, claimed: bool
) -> None:
    tree.add(90, 1, ["bash", "-c", text], session=90, cwd=cwd)
    assert [one.pid for one in look(tree).restarters] == ([90] if claimed else [])


def test_a_queue_that_runs_another_folders_script_is_left_alone(
    tree: ProcTree, tmp_path: Path
) -> None:
    queue = tmp_path / "queue.sh"
    queue.write_text(
        "for seed in 1 2 3; do (cd /elsewhere && python train.py --seed $seed); done\n"
    )
    tree.add(90, 1, ["bash", str(queue)], session=90, group=90)
    tree.add(91, 90, [PY, "train.py"], session=90, group=90, cwd="/elsewhere")
    tree.add(92, 91, SPAWN, session=90, group=90, cwd="/elsewhere")
    tree.add(100, 1, [PY, "train.py"], session=300)
    found = look(tree)
    assert (pids(found), found.others, found.restarters) == ([100], (), ())


def test_a_loop_in_a_shell_that_nobody_answers_for_starts_it_again(
    tree: ProcTree, tmp_path: Path
) -> None:
    tree.add(90, 1, ["bash", "-c", "while true; do python train.py; sleep 1; done"], session=90)
    found = look(tree)  # between two runs nothing but the loop lives
    assert (found.earlier, [(one.kind, one.pid) for one in found.restarters]) == (
        (),
        [("shell", 90)],
    )
    tree.add(100, 90, [PY, "train.py"], session=90)
    found = look(tree)
    assert (pids(found), [(one.kind, one.pid) for one in found.restarters]) == (
        [100],
        [("shell", 90)],
    )
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
    tree.add(
        102,
        1,
        [PY, "train.py"],
        session=102,
        cgroup="0::/user.slice/user-1000.slice/user@1000.service/app.slice/nightly.service",
    )
    tree.add(103, 1, [PY, "train.py"], session=103, cgroup="0::/system.slice/train.service")
    tree.add(
        104, 1, [PY, "train.py"], session=104, cgroup=f"0::/system.slice/docker-{'ab' * 32}.scope"
    )
    found = look(tree)
    assert pids(found) == [100, 101, 102, 103, 104]
    named = {(one.kind, one.name if one.pid == 0 else one.pid) for one in found.restarters}
    assert named == {
        ("supervisor", 70),
        ("cron", 71),
        ("user-unit", "nightly.service"),
        ("unit", "train.service"),
        ("container", "ab" * 6),
    }


def test_an_orphaned_parent_is_named_as_who_may_start_the_next(tree: ProcTree) -> None:
    tree.add(90, 1, [PY, "watchdog.py"], session=300)
    tree.add(100, 90, [PY, "train.py"], session=300)
    found = look(tree)
    assert (pids(found), [(one.kind, one.pid) for one in found.restarters]) == (
        [100],
        [("parent", 90)],
    )


def test_modules_and_code_count_in_their_own_folder_only(tree: ProcTree) -> None:
    tree.add(100, 1, [PY, "-m", "pkg.train"], session=300)
    tree.add(101, 1, [PY, "-m", "pkg.train"], session=301, cwd="/elsewhere")
    tree.add(102, 1, [PY, "-c", "import pkg; pkg.main()"], session=302)
    tree.add(103, 1, [PY, "-m", "torch.distributed.run", "-m", "pkg.train"], session=303)
    assert pids(look(tree, Wanted("module", "pkg.train", "/job"))) == [100, 103]
    assert pids(look(tree, Wanted("code", "import pkg; pkg.main()", "/job"))) == [102]


def test_what_a_command_runs() -> None:
    assert wanted_of(["torchrun", "train.py"], "/job", "/job/train.py") == SCRIPT
    assert wanted_of(["torchrun", "--nproc-per-node", "2", "-m", "pkg.train"], "/job") == Wanted(
        "module", "pkg.train", "/job"
    )
    assert wanted_of([PY, "-m", "pkg.train"], "/job") == Wanted("module", "pkg.train", "/job")
    assert wanted_of([PY, "-c", "1"], "/job") == Wanted("code", "1", "/job")
    assert wanted_of(["bash", "run.sh"], "/job") is None
