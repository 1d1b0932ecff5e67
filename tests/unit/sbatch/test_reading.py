"""Batch scripts are read as sbatch and the shell read them, and never run."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from tests.gallery.sbatch import score
from trainprobe.sbatch import numbers
from trainprobe.sbatch.directives import directives, split_directive
from trainprobe.sbatch.engine import CHECKS, checked, login_node_of, plan_of
from trainprobe.sbatch.expanding import arithmetic, expand, expanded
from trainprobe.sbatch.findings import corrected
from trainprobe.sbatch.launches import launches
from trainprobe.sbatch.options import options_of
from trainprobe.sbatch.script import read_script, unwrapped
from trainprobe.sbatch.shell import commands
from trainprobe.sbatch.site import LoginNode


def values(text: str) -> dict[str, str]:
    return {name: option.value for name, option in read_script(text).options.items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--nodes=2", {"nodes": "2"}),
        ("-N 2 -n4", {"nodes": "2", "ntasks": "4"}),
        ("-N2 --ntasks-per-node 8", {"nodes": "2", "ntasks-per-node": "8"}),
        ("--job-name='my job' # a comment", {"job-name": "my job"}),
        (r"--job-name=a\ b", {"job-name": "a b"}),
        ("-J a#b", {"job-name": "a"}),
        ("--exclusive --time 1:00", {"exclusive": "", "time": "1:00"}),
        ("--exclusive=user -H", {"exclusive": "user", "hold": ""}),
        ("--cpus-per-t=4", {"cpus-per-task": "4"}),
        ("--requeue --signal=B:USR1@60", {"requeue": "", "signal": "B:USR1@60"}),
    ],
)
def test_options_of_a_line(line: str, expected: dict[str, str]) -> None:
    assert values(f"#!/bin/sh\n#SBATCH {line}\nsrun true\n") == expected


def test_options_end_at_the_first_command() -> None:
    told = directives("#!/bin/sh\n\n# words\n#SBATCH -N 2\n   \nexport A=1\n#SBATCH -t 5\n")
    assert [option.name for option in told.components[0]] == ["nodes"]
    assert (told.first_command, [(flaw.kind, flaw.line) for flaw in told.flaws]) == (
        6,
        [("late", 7)],
    )


def test_a_template_is_no_script_yet() -> None:
    for nodes in ("{{ nodes }}", "{nodes}", "<number of nodes>"):
        told = directives(f"#!/bin/sh\n#SBATCH --nodes={nodes}\n#SBATCH -t 5 # <hours>\n")
        assert [(flaw.kind, flaw.line) for flaw in told.flaws] == [("foreign", 2)]
        assert [option.name for option in told.components[0]] == ["time"]


def test_the_directives_of_a_job_in_a_here_document_are_its_own() -> None:
    text = "#!/bin/sh\n#SBATCH -N 2\nsbatch <<'EOF'\n#!/bin/sh\n#SBATCH -t 5\nEOF\n#SBATCH -n 3\n"
    assert [(flaw.kind, flaw.line) for flaw in directives(text).flaws] == [("late", 7)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('A=(--nnodes=2 --nproc-per-node 8)\nsrun torchrun "${A[@]}" t.py', True),
        ("A=(\n  --nnodes=2 # don't\n)\nA+=(--nproc-per-node=8)\nsrun torchrun ${A[@]} t.py", True),
        ('declare -a A=(--nnodes=2)\nsrun torchrun ${A[0]} "--nproc-per-node=8" t.py', True),
        ("srun torchrun $ARGS t.py", False),
    ],
)
def test_arrays_hold_options(body: str, words: bool) -> None:
    (found,) = launches(read_script(f"#!/bin/bash\n#SBATCH -N 2\n{body}\n"))
    assert (found.machines == (2, 2), found.per_node == 8, not found.open) == (words,) * 3


def test_the_command_line_stands_above_the_environment_and_the_script() -> None:
    text = "#!/bin/sh\n#SBATCH -N 1 -p a -t 5\n#SBATCH hetjob\n#SBATCH -N 3\nsrun true\n"
    script = read_script(text, ("--nodes=4",), {"SBATCH_PARTITION": "b", "SBATCH_TIMELIMIT": "9"})
    assert {name: option.value for name, option in script.options.items()} == {
        "nodes": "4",
        "partition": "b",
        "time": "9",
    }
    assert (script.options["nodes"].where, script.options["partition"].where) == (
        "the command line",
        "SBATCH_PARTITION in the environment",
    )
    assert script.components[1]["nodes"].value == "3"


@pytest.mark.parametrize(
    "words",
    [["--ntask-per-node=2"], ["--ntasks"], ["-y"], ["--hold=3"], ["--n=3"], ["--partition="]],
)
def test_what_sbatch_refuses_is_a_flaw(words: list[str]) -> None:
    assert options_of(words).flaws


def test_a_step_takes_options_that_a_job_does_not() -> None:
    assert not options_of(["--overlap", "--het-group=1", "-l", "-K1", "python"], step=True).flaws
    assert options_of(["--overlap"]).flaws
    assert options_of(["-N", "1", "python", "-n", "4"], step=True).rest == ("python", "-n", "4")


def test_words_of_a_directive() -> None:
    assert split_directive(' --a="x y"  -b \'c d\' e\\"f #g') == ["--a=x y", "-b", "c d", 'e"f']


def test_commands_over_several_lines_and_in_brackets() -> None:
    text = (
        'a \\\n b\nif [ x ]; then\n c && d\nfi\ncat <<EOF\nsrun no\nEOF\nfor i in 1 2; do e "$(f'
        ' g)" & done; h | i\nj() {\n k\n}\n# l\n'
    )
    found = [(one.words, one.line, one.loop, one.nested, one.after) for one in commands(text)]
    assert [(words, line) for words, line, *_ in found] == [
        (("a", "b"), 1),
        (("[", "x", "]"), 3),
        (("c",), 4),
        (("d",), 4),
        (("cat", "<<EOF"), 6),
        (("e", '"$(f g)"'), 9),
        (("h",), 9),
        (("i",), 9),
        (("j",), 10),
        (("k",), 11),
    ]
    assert [loop for words, _, loop, *_ in found if words[0] in ("e", "h")] == [True, False]
    assert next(after for words, *_, after in found if words[0] == "e") == "&"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("$A", ("1",)),
        ("${A}x", ("1x",)),
        ('"$B"', ("two words",)),
        ("$B", ("two", "words")),
        ("'$A'", ("$A",)),
        ("\\$A", ("$A",)),
        ("${C:-3}", ("3",)),
        ("$C", ("${C}",)),
        ("$(hostname -s)", ("$(hostname -s)",)),
        ("`date +%s`", ("$(date +%s)",)),
        ("$((A * 4 + 1))", ("5",)),
        ("$((A + D))", ("$((A + D))",)),
        ("$S", ("$(a b)", "c")),
        ("$EMPTY", ()),
        ('"$EMPTY"', ("",)),
    ],
)
def test_words_become_what_the_shell_makes_of_them(word: str, expected: tuple[str, ...]) -> None:
    assert expand(word, {"A": "1", "B": "two words", "S": "$(a b) c", "EMPTY": ""}) == expected


def test_arithmetic_is_bounded() -> None:
    assert arithmetic("10000 + SLURM_JOB_ID % 20000", {"SLURM_JOB_ID": "54321"}) == 24321
    for text in ("1/0", "__import__('os')", "9" * 300, "2**99", "(" * 300, "a b"):
        assert arithmetic(text, {}) is None
    assert expanded("${A:-" * 50, {}) is not None


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("1:30", 1.5),
        ("2:00:00", 120),
        ("1-12", 2160),
        ("1-00:30", 1470),
        ("UNLIMITED", float("inf")),
        ("2h", None),
        ("", None),
    ],
)
def test_times(text: str, minutes: float | None) -> None:
    assert numbers.minutes(text) == minutes


def test_sizes_gpus_and_hosts() -> None:
    assert [numbers.megabytes(text) for text in ("4G", "512", "2T", "1024K", "x", "4.5G")] == [
        4096,
        512,
        2097152,
        1,
        None,
        4096,
    ]
    assert [
        numbers.gres_gpus(text)
        for text in (
            "gpu:4",
            "gpu",
            "gpu:a100:8(S:0-1),ssd:1",
            "gpu:a100:2,gpu:h100:2",
            "ssd:1",
            "(null)",
        )
    ] == [
        4,
        1,
        8,
        4,
        None,
        None,
    ]
    assert numbers.hosts("n[01-03,7],x") == ("n01", "n02", "n03", "n7", "x")
    assert len(numbers.hosts("n[1-999999999],m[1-30000]")) <= numbers.MOST_HOSTS


def test_what_stands_before_a_command_is_taken_off() -> None:
    for words in (
        "exec env A=1 python t.py",
        "timeout -k 5 60 python t.py",
        ("numactl --cpunodebind=0 python t.py"),
        "singularity exec --nv -B /a:/b img.sif python t.py",
        "nice -n 5 python t.py",
        "apptainer exec --bind=/a img.sif python t.py",
        "singularity run --nv img.sif python t.py",
        "nsys profile -o trace python t.py",
    ):
        assert unwrapped(words.split()) == ("python", "t.py"), words


def test_a_launch_is_found_through_variables_functions_and_shells() -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=4\n"
    for body in (
        "srun torchrun --nproc_per_node=4 --nnodes 2 t.py",
        'L="torchrun --nproc-per-node 4 --nnodes=$SLURM_NNODES"\nsrun $L t.py',
        "srun bash -c 'torchrun --nproc-per-node=4 --nnodes=$SLURM_NNODES t.py'",
        'srun bash -lc "python -m torch.distributed.run --nproc_per_node=4 --nnodes=2 t.py"',
        "f() {\n srun -l torchrun --nproc-per-node=$SLURM_GPUS_ON_NODE --nnodes=2 $1\n}\nf t.py",
    ):
        (found,) = launches(read_script(head + body))
        assert (found.program, found.per_node, found.shape.nodes, found.step is not None) == (
            "torchrun",
            4,
            2,
            True,
        ), body


def test_a_variable_of_tasks_is_frozen_in_the_batch_shell_only() -> None:
    head = "#!/bin/bash\n#SBATCH -N 2\n"
    outside = launches(read_script(head + "srun torchrun --node_rank=$SLURM_NODEID t.py"))[
        0
    ].options["node-rank"]
    inside = launches(read_script(head + "srun bash -c 'torchrun --node_rank=$SLURM_NODEID t.py'"))[
        0
    ].options["node-rank"]
    escaped = launches(
        read_script(head + 'srun bash -c "torchrun --node_rank=\\$SLURM_NODEID t.py"')
    )[0].options["node-rank"]
    assert (outside, inside, escaped) == (
        "\u27eaSLURM_NODEID\u27eb",
        "${SLURM_NODEID}",
        "${SLURM_NODEID}",
    )


def test_hostile_scripts_end_in_a_sentence() -> None:
    draw = random.Random(7)
    pieces = [
        "#SBATCH ",
        "--nodes=",
        "$(",
        "${",
        "((",
        "))",
        '"',
        "'",
        "`",
        "\\",
        "\n",
        "srun ",
        "torchrun ",
        "bash -c ",
        "for ",
        "do ",
        "<<EOF\n",
        "=",
        "\x00",
        "\udcff",
        "9" * 40,
        "%",
        "&",
        "{",
        "}",
    ]
    texts = ["".join(draw.choice(pieces) for _ in range(draw.randint(1, 400))) for _ in range(150)]
    texts += [
        "#!/bin/bash\n" + "$(" * 30_000,
        "(" * 100_000,
        "bash -c '" * 3000,
        "A=$A$A\n" * 3000,
        "#SBATCH " + "-N 1 " * 20_000,
        "if " * 20_000,
        "",
        "\n" * 100_000,
    ]
    texts += ["#!/bin/sh\nsource b.sh\n", "#!/bin/sh\nbash a.sh\n. a.sh\nsrun a.sh\n"]
    texts += ["#!/bin/sh\nA=xxxxxxxx\n" + "A=$A$A$A$A\n" * 40 + "srun torchrun $A\n"]
    began = time.monotonic()
    for text in texts:
        found = checked(plan_of(text, (), None, LoginNode(files={"a.sh": text, "b.sh": LOOP})))
        assert {one.id for one in found} == set(CHECKS), text[:100]
        assert all(one.says and len(one.says) < 5000 for one in found)
        corrected(text, found)
    assert time.monotonic() - began < 60


def test_foreign_evidence_of_another_shape_is_left_out() -> None:
    here = login_node_of(
        {
            "limits": {"nofile": "many", "as": [1], "cpu": [True, -1]},
            "environ": ["x"],
            "paths": {"/a": 3},
            "programs": {"t.py": 4},
            "cwd": 7,
        }
    )
    assert (here.limits, here.environ, here.paths, here.cwd) == ({"cpu": (None, None)}, {}, {}, "")
    assert checked(plan_of("#!/bin/sh\nsrun python t.py", (), None, here))


@pytest.mark.parametrize(
    ("planted", "check", "says"),
    [
        ("environment_kept_out_of_the_image", "plan.environment", "SLURM_LOCALID, SLURM_PROCID"),
        ("environment_not_named_for_docker", "plan.environment", "docker in line 14 keeps"),
        ("master_of_another_component", "plan.master", "is a node of component 0"),
        ("tasks_in_the_first_component", "plan.tasks", "component 1 is meant"),
    ],
)
def test_what_containers_and_components_keep_apart(planted: str, check: str, says: str) -> None:
    _, found = score.told(planted, "planted")
    assert any((one.id, one.state) == (check, "fail") and says in one.says for one in found), found


@pytest.mark.parametrize(
    ("planted", "right"),
    [
        (
            "environment_not_named_for_docker",
            ("docker run --rm", "docker run --env-file job.env --rm"),
        ),
        (
            "environment_not_named_for_docker",
            (
                "docker run --rm",
                "docker run -e RANK -e LOCAL_RANK -e WORLD_SIZE -e MASTER_ADDR -e MASTER_PORT --rm",
            ),
        ),
        ("environment_kept_out_of_the_image", ("--nv --cleanenv", "--nv")),
        ("master_of_another_component", ('NODELIST"', 'NODELIST_HET_GROUP_1"')),
        ("master_of_another_component", ("--het-group=1", "--het-group=0,1")),
        ("tasks_in_the_first_component", ("srun torchrun", "srun --het-group=1 torchrun")),
    ],
)
def test_what_is_passed_on_and_named_is_right(planted: str, right: tuple[str, str]) -> None:
    text = (score.HERE / "planted" / f"{planted}.sh").read_text(encoding="utf-8")
    assert right[0] in text
    found = checked(score.plan_for(planted, text.replace(*right)))
    wrong = ("plan.environment", "plan.master", "plan.tasks")
    assert [one for one in found if one.id in wrong and one.state in ("fail", "likely")] == []


def test_planted_faults_are_told_sound_scripts_are_left_alone_and_corrections_heal() -> None:
    found = score.score()
    assert found["planted"] >= 80
    assert found["told"] >= 0.95 * found["planted"], found["missed"]
    assert found["beside"] == {}
    assert (found["sound"] >= 15, found["alarms"]) == (True, {})
    assert found["mended"] >= 55
    assert found["healed"] == found["mended"]


HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n"
LOOP = "source b.sh\nbash b.sh\nsrun ./b.sh\n" * 1000
LARGE = {
    "a variable that doubles": (
        HEAD + "A=xxxxxxxx\n" + "A=$A$A\n" * 40 + "B=" + "$A" * 100_000 + "\nsrun python $B\n"
    ),
    "in quotes": (
        HEAD + "A=xxxxxxxx\n" + "A=$A$A\n" * 20 + 'B="' + "$A" * 100_000 + '"\nsrun python "$B"\n'
    ),
    "commas": HEAD + "#SBATCH --gres=" + "," * 250_000 + "\nsrun python a.py\n",
    "options that come late": HEAD + "srun python a.py\n" + "#SBATCH --mem=1\n" * 15_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_script_costs_neither_minutes_nor_gigabytes(name: str) -> None:
    tracemalloc.start()
    try:
        began = time.process_time()
        found = checked(plan_of(LARGE[name]))
        assert (time.process_time() - began < 20, tracemalloc.get_traced_memory()[1] < 200e6) == (
            True,
            True,
        )
    finally:
        tracemalloc.stop()
    assert {one.id for one in found} >= set(CHECKS[:3])
    assert len(found) < 200


def test_commas_in_brackets_belong_to_one_kind_of_gpu() -> None:
    assert numbers.gres_gpus("gpu:a100:4(S:0,1),ssd:1,gpu:h100:2(S:2-3)") == 6


def test_a_signal_without_a_lead_is_given_one() -> None:
    text = (
        "#!/bin/sh\n#SBATCH -N 1 --time=0:30 --signal=B:USR1\ntrap save USR1\nsrun python a.py"
        " &\nwait\n"
    )
    found = [
        one for one in checked(plan_of(text)) if one.id == "plan.signal" and one.state == "fail"
    ]
    assert "--signal=B:USR1@120" in corrected(text, found)


def test_a_template_with_blanks_in_its_braces_is_no_script_yet() -> None:
    (flaw,) = read_script("#!/bin/sh\n#SBATCH --nodes={ nodes }\nsrun python a.py\n").flaws
    assert flaw.kind == "foreign"
