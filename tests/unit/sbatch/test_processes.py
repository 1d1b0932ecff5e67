"""The processes of a launch as each sees itself: its variables, its GPUs, how sure a finding is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gallery.sbatch.score import site_told
from trainprobe.case import Case
from trainprobe.collect.paths_child import program_says
from trainprobe.pipelines import conclude
from trainprobe.report.text import text_of
from trainprobe.sbatch.engine import checked, plan_of
from trainprobe.sbatch.launches import Launch, launches
from trainprobe.sbatch.schedulers import scheduler_of
from trainprobe.sbatch.script import passed_on, read_script
from trainprobe.sbatch.site import LoginNode

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4\n"


def launch_of(text: str, environ: dict[str, str] | None = None) -> Launch:
    (launch,) = launches(read_script(text, (), environ or {}))
    return launch


@pytest.mark.parametrize(
    ("exports", "expected"),
    [
        ("ALL", {"A": "1", "SLURM_X": "2"}),
        ("NONE", {"SLURM_X": "2"}),
        ("A", {"A": "1", "SLURM_X": "2"}),
        ("B=3", {"B": "3", "SLURM_X": "2"}),
        ("ALL,B=3", {"A": "1", "B": "3", "SLURM_X": "2"}),
    ],
)
def test_what_export_lets_through(exports: str, expected: dict[str, str]) -> None:
    assert passed_on(exports, {"A": "1", "SLURM_X": "2"}) == expected


def test_steps_inherit_export_unless_the_script_takes_it_back() -> None:
    body = "export MASTER_ADDR=node1\n{}srun python t.py\n"
    none = HEAD + "#SBATCH --export=NONE\n"
    cut = launch_of(none + body.format(""), {"HERE": "1"})
    assert cut.step is not None
    assert (cut.step.lost, "MASTER_ADDR" in cut.run.environment()) == (("MASTER_ADDR",), False)
    for line in ("unset SLURM_EXPORT_ENV\n", "export SLURM_EXPORT_ENV=ALL\n"):
        whole = launch_of(none + body.format(line), {"HERE": "1"})
        assert whole.run.environment()["MASTER_ADDR"] == "node1"
        assert "HERE" not in whole.run.environment()


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ("", None),
        ("--gpus-per-task=1", 1),
        ("--ntasks-per-gpu=1", 1),
        ("--gpus-per-task=1 --gpu-bind=none", None),
        ("--gpu-bind=single:1", 1),
        ("--gpu-bind=closest", None),
    ],
)
def test_the_gpus_that_a_task_sees(options: str, seen: int | None) -> None:
    assert launch_of(f"{HEAD}srun {options} python t.py\n").gpus_of_task == seen


@pytest.mark.parametrize(
    ("source", "device", "requires"),
    [
        ("torch.cuda.set_device(local_rank)", "local_rank", []),
        ("torch.cuda.set_device(local_rank % torch.cuda.device_count())", "", []),
        ("torch.cuda.set_device(0)", "", []),
        ("r = int(os.environ['LOCAL_RANK'])\ntorch.device('cuda', r)", "", ["LOCAL_RANK"]),
        ("if 'RANK' in os.environ:\n    r = os.environ['LOCAL_RANK']", "", []),
        ("os.environ['RANK'] = '0'\nr = os.environ['RANK']", "", []),
        ("model = DDP(m, device_ids=[args.local_rank])", "local_rank", []),
    ],
)
def test_the_program_says_which_gpu_it_takes_and_what_it_reads(
    tmp_path: Path, source: str, device: str, requires: list[str]
) -> None:
    path = tmp_path / "t.py"
    path.write_text(f"import os, torch\n{source}\n", encoding="utf-8")
    says = program_says(str(path))
    assert (says["device"], says["requires"]) == (device, requires)


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        ("#PBS -l select=3:ncpus=8:ngpus=2:mpiprocs=2\n", (3, 2, 2)),
        ("#PBS -l nodes=2:ppn=4:gpus=4\n", (2, 4, 4)),
        ("#PBS -l select=1:ngpus=2:mpiprocs=2+1:ngpus=2:mpiprocs=2\n", (2, 2, 2)),
        ('#BSUB -n 8\n#BSUB -R "rusage[mem=4GB] span[ptile=4]"\n#BSUB -gpu "num=4"\n', (2, 4, 4)),
        ('#BSUB -n 8\n#BSUB -R "span[hosts=1]"\n#BSUB -gpu num=2:mode=shared\n', (1, 8, 2)),
    ],
)
def test_pbs_and_lsf_have_the_same_shapes(head: str, shape: tuple[int, int, int]) -> None:
    job = plan_of(f"#!/bin/bash\n{head}mpiexec python t.py\n").job
    assert (job.nodes, job.tasks_on_node, job.gpus) == shape


@pytest.mark.parametrize(
    ("words", "tasks", "each"),
    [
        ("mpirun -np 8 --map-by ppr:4:node -x A", 8, 4),
        ("mpiexec -n 8 --ppn 2 --cpu-bind depth -d 8", 8, 2),
        ("jsrun -n 4 -a 2 -r 2 -g 2", 8, 4),
        ("mpirun --mca btl ^openib -n 8", 8, 1),
    ],
)
def test_tasks_of_other_launchers(words: str, tasks: int, each: int) -> None:
    launch = launch_of(f"#!/bin/bash\n#PBS -l select=8:mpiprocs=1\n{words} python t.py\n")
    assert (launch.script, launch.shape.all_tasks, launch.shape.tasks_on_node) == (
        "t.py",
        tasks,
        each,
    )


def test_a_fix_uses_the_words_of_its_scheduler() -> None:
    pbs = scheduler_of("#!/bin/bash\n#PBS -l select=2\n")
    assert pbs.fix("--rdzv-id=$SLURM_JOB_ID") == "--rdzv-id=$PBS_JOBID"
    assert scheduler_of("#!/bin/bash\n").name == "SLURM"


def test_an_option_of_a_plugin_is_no_fault_and_a_misspelt_one_is() -> None:
    text = "#!/bin/bash\n#SBATCH {}\nsrun true\n"
    for option, state in (("--nvmps", "warn"), ("--ntask-per-node=4", "fail")):
        found = checked(plan_of(text.format(option)))
        assert [one.state for one in found if one.id == "plan.script"] == [state], option


def test_what_is_likely_wrong_is_not_almost_certain(tmp_path: Path) -> None:
    text = (
        "#!/bin/bash\n#SBATCH --partition=gpu --nodes=2 --gpus-per-node=8 --cpus-per-task=64\n"
        "#SBATCH --time={} --output=%j.out\nmodule load torch\n"
        "srun torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d"
        " --rdzv-endpoint=$(hostname):$((10000 + SLURM_JOB_ID % 20000)) t.py\n"
    )
    shown: dict[str, tuple[str, list[float]]] = {}
    for time in ("48", "48 # hours", "48:00:00"):
        with Case.create(str(tmp_path / f"case{len(shown)}"), "ready", ("trainprobe",)) as case:
            data = {"script": "job.sh", "text": text.format(time), "site": site_told()}
            case.add("sbatch", cell="checks", data=data)
            report = conclude(case.seal(), "ready", "", ())
        shown[time] = (report.verdict, [round(one.confidence, 1) for one in report.causes])
        assert ("likely wrong plan.time" in text_of(report)) == (time == "48")
    assert shown["48:00:00"][0] == "healthy"
    assert shown["48 # hours"][1][0] > 0.9 > shown["48"][1][0] > 0.5


def told(text: str) -> set[tuple[str, str]]:
    return {
        (one.id, one.state) for one in checked(plan_of(text)) if one.state in ("fail", "likely")
    }


TWO = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=2\n"
TORCHRUN = (
    "torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint={}:29400 {}\n"
)
FIRST = 'head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
NODES = "N=($(scontrol show hostnames $SLURM_JOB_NODELIST))\n"
PBS = "#!/bin/bash\n#PBS -l select=2:ngpus=2\ncd $PBS_O_WORKDIR\n"
OVER_SSH = "torchrun --nnodes=2 --nproc-per-node=2 --node-rank=$i --master-addr=$m train.py"
JSRUN = "#!/bin/bash\n#BSUB -nnodes 1\njsrun -n 1 -a 1 -g 6 {} python /a/t.py --num-workers 12\n"


@pytest.mark.parametrize(
    ("wrong", "sound", "finding"),
    [
        (
            TWO + FIRST + "srun " + TORCHRUN.format("$head_node", "python t.py"),
            TWO + FIRST + "srun " + TORCHRUN.format("$head_node", "--no-python python t.py"),
            ("plan.tasks", "fail"),
        ),
        (
            TWO + FIRST + "srun " + TORCHRUN.format("$head_node", "\\ \n  t.py"),
            TWO + FIRST + "srun " + TORCHRUN.format("$head_node", "\\\n  t.py"),
            ("plan.tasks", "fail"),
        ),
        (
            TWO + NODES + 'srun --nodelist="${N[@]:0:2}" ' + TORCHRUN.format("${N[0]}", "t.py"),
            TWO + NODES + 'srun --nodelist="${N[@]:0:1}" python t.py\n',
            ("plan.tasks", "fail"),
        ),
        (
            TWO + FIRST + "srun " + TORCHRUN.format("$(head_node).uni.edu", "t.py"),
            TWO + FIRST + "srun " + TORCHRUN.format("$head_node.uni.edu", "t.py"),
            ("plan.environment", "fail"),
        ),
        (
            TWO + FIRST + "srun $(which singularity) exec a.sif " + "torchrun t.py\n",
            TWO
            + FIRST
            + "srun $(which singularity) exec a.sif "
            + TORCHRUN.format("$head_node", "t.py"),
            ("plan.rendezvous", "fail"),
        ),
        (
            TWO + "master_addr=$(hostname)\nexport MASTER_ADDR=$MASTER_ADDR\nsrun python t.py\n",
            TWO + "master_addr=$(hostname)\nexport MASTER_ADDR=$master_addr\nsrun python t.py\n",
            ("plan.environment", "fail"),
        ),
        (
            TWO + "#SBATCH --export=NONE\nconda activate a\nsrun own-training\n",
            TWO + "#SBATCH --export=NONE\nconda activate a\nsrun --export=ALL own-training\n",
            ("plan.environment", "likely"),
        ),
        (
            "#!/bin/bash\n#SBATCH --signal=INT@90 --time=60\npython t.py\n",
            "#!/bin/bash\n#SBATCH --signal=INT@90 --time=60\nsrun python t.py\n",
            ("plan.signal", "fail"),
        ),
        (
            PBS + f'for i in 0 1; do\nssh $n "{OVER_SSH}" &\ndone\n',
            PBS + f'for i in 0 1; do\nssh $n "cd $PBS_O_WORKDIR; {OVER_SSH}" &\ndone\nwait\n',
            ("plan.steps", "fail"),
        ),
        (
            PBS + f'for i in 0 1; do\nssh $n "{OVER_SSH}"\ndone\n',
            PBS + f'for i in 0 1; do\nssh -fn $n "cd $PBS_O_WORKDIR; {OVER_SSH}" &\ndone\nwait\n',
            ("plan.steps", "fail"),
        ),
        (
            PBS + f"for i in 0 1; do\nssh -q $n\n{OVER_SSH} &\ndone\nwait\n",
            PBS + f"for i in 0 1; do\nssh -N -L 1:a:2 $n\n{OVER_SSH} &\ndone\nwait\n",
            ("plan.steps", "fail"),
        ),
        (JSRUN.format("-c 1"), JSRUN.format("-c 14"), ("plan.cpus", "likely")),
        (JSRUN.format("-c 1"), JSRUN.format("-c 1 -b none"), ("plan.cpus", "likely")),
    ],
)
def test_words_that_mean_something_else_than_they_look(
    wrong: str, sound: str, finding: tuple[str, str]
) -> None:
    assert finding in told(wrong)
    assert finding not in told(sound)


def test_a_program_that_names_its_own_meeting_place_needs_no_variables(tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    for given, own in (
        ('"nccl", init_method=f"tcp://{host}:1", rank=r, world_size=n', True),
        ('"nccl", store=store, rank=r, world_size=n', True),
        ('"nccl", init_method="env://", rank=r, world_size=n', False),
        ('"nccl"', False),
    ):
        path.write_text(f"dist.init_process_group({given})\n", encoding="utf-8")
        about = program_says(str(path))
        assert about["own_meeting"] is own
        text = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\nsrun python t.py\n"
        found = checked(plan_of(text, (), None, LoginNode(programs={"t.py": about})))
        wrong = {one.id for one in found if one.state == "fail"}
        assert ({"plan.master", "plan.rendezvous"} & wrong == set()) is own
