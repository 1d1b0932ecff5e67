"""docs/sbatch.md: what is said of a batch script before it is submitted, from a wrong one that
is judged here on an invented site.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.gallery.sbatch.score import ENVIRON, score, site_told
from trainprobe.case import Case
from trainprobe.checks import catalogue
from trainprobe.pipelines import conclude
from trainprobe.report.text import text_of
from trainprobe.sbatch.engine import CHECKS

WRONG = Path(__file__).resolve().parents[1] / "examples" / "wrong.sbatch"
INTRO = """# A batch script before it is submitted

```
trainprobe ready --sbatch job.sh
trainprobe ready --sbatch job.sh --write mended.sh -- --nodes 8 --time 4:00:00
```

It reads the script, asks SLURM what the site allows (`scontrol show` of configuration, partitions and nodes, each with a deadline), and looks at the paths and limits
of the login node. Nothing is submitted and nothing of the script is run: its variables are followed as far as they can be, and what is known only
when the job runs stays open. Shell scripts in the working folder that it calls are followed too. Options of sbatch's own command line come after `--`.

Scripts of PBS (`#PBS`) and LSF (`#BSUB`) are read by the same model of nodes, tasks, GPUs and environments; their sites are not asked, and no corrected
script is written for them. So are Kubernetes manifests: Job, PyTorchJob, TrainJob, JobSet and LeaderWorkerSet.

What is called *wrong* contradicts the documentation of the scheduler or launcher. *Likely wrong* is right only for a reason that the script does not show, such
as a program that starts its own ranks; it gets half the evidence points and is never almost certain. The rest are warnings.

It ends with 0 where nothing is wrong, 1 where something is, 2 where there is no such script, and 3 where the site gave no answer on which it depends.
`--write FILE` writes the corrected script there; the script itself is never changed. Without SLURM it judges what the script alone shows.

## An example

"""
AFTER = """
## What is looked at

| check | what | right is | a failure is | where that comes from |
|---|---|---|---|---|
"""
FIGURES = """
## How well

On 20 wrong and 20 sound scripts out of public repositories and threads (29 of SLURM, 4 of PBS, 3 of LSF, 4 manifests), collected and labelled last by somebody who
knew none of the rules, and judged once: **12 of the 20 wrong ones were told for the labelled reason**, one more for another fault that it has, and **3 of the 20 sound ones were called at risk**,
one for another name of an option, two because the folder of their output is not there where a script lies alone. Of the seven missed, three are mended since: a misspelt option of a launcher, one
that accelerate does not abbreviate, a program that is a variable which nobody sets. Still missed: digits with a leading zero in `$(( ))`, `$RANDOM` as a port, an escaped dollar in one branch, a quote that takes in the next option.

On 49 scripts after real ones, collected and labelled by somebody who knew none of the rules, and judged once on a host without SLURM:
of 20 wrong batch scripts 14 were told, of 14 sound ones none was called wrong; of 6 wrong scripts of PBS, LSF and Kubernetes 1 was told for the
right reason, and of 9 sound ones 1 was called wrong. What was missed has been mended since, so these figures are of the state before.
On 16 more, typical of sites (pyxis, apptainer, docker, modules and conda, arrays, heterogeneous jobs, requeues), written here out of public documentation before any rule was looked at: of 8 wrong
ones 5 were told (one of them with the wrong cure), and of 8 sound ones 1 was called doubtful. They are among the scripts below, mended, as far as they were new.

On {planted} scripts with one planted fault each, on an invented site, the fault was told in {told}, and {healed} are free of it when
they are corrected by rule. Of {sound} sound scripts something was called wrong or doubtful in {wrong}.
These scripts and the rules have the same author.

## What it cannot see

- Values that a program prints, a file outside of the working folder, or a module that is loaded set.
- What the nodes are like: `srun trainprobe ready` in the allocation tells that.
- Launchers other than `srun`, `mpirun`, `mpiexec`, `jsrun`, `pbsdsh`, `blaunch`, `torchrun`, `accelerate`, `deepspeed` and `python`, and containers' own limits.
- A site's plugins and `job_submit` scripts, which change a job after it was submitted.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Give the page under docs/ and its text."""
    yield (
        "sbatch.md",
        f"{INTRO}[examples/wrong.sbatch](examples/wrong.sbatch):\n\n```bash\n{_script()}```\n\n```\n{_said()}\n```\n{AFTER}{_checks()}{_figures()}",
    )


def _script() -> str:
    return WRONG.read_text(encoding="utf-8")


def _said() -> str:
    here: dict[str, Any] = {
        "environ": ENVIRON,
        "limits": {
            "nofile": [1024, 524288],
            "as": [None, None],
            "cpu": [None, None],
            "memlock": [8388608, 8388608],
        },
        "programs": {"train.py": {"workers": 8, "inits": True}},
        "cwd": "/home/me/project",
        "home": "/home/me",
        "host": "login1",
        "paths": {"/home/me/project/logs": "missing", "/home/me/project/train.py": "file"},
    }
    data = {
        "script": "wrong.sbatch",
        "text": _script(),
        "options": [],
        "site": {"version": "slurm 24.05.4", **site_told()},
        "here": here,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Case.create(
            os.path.join(folder, "case"),
            "ready",
            ("trainprobe", "ready", "--sbatch", "wrong.sbatch"),
        ) as case,
    ):
        case.add("sbatch", cell="checks", data=data)
        return text_of(conclude(case.seal(), "ready", "", ()), width=110).strip()


def _checks() -> str:
    specs = [catalogue()[name] for name in CHECKS]
    return "".join(
        f"| `{spec.id}` | {spec.title} | {spec.threshold} | {spec.severity} | {spec.source} |\n"
        for spec in specs
    )


def _figures() -> str:
    figures = score()
    return FIGURES.format(
        planted=figures["planted"],
        told=figures["told"],
        sound=figures["sound"],
        wrong=len(figures["alarms"]),
        healed=figures["healed"],
    )
