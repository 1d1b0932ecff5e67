"""The stories: what is broken, the command that a user would type, the cause that is true, and the
fix that mends it.

The tool never reads this file. It is given a program under the name train.py, in a folder whose
name says nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROGRAMS = FOLDER / "programs"
RESULTS = FOLDER / "results.json"
LIMIT_S = 90.0
"""A story is to be found within this time, on two cores."""


@dataclass(frozen=True)
class Story:
    """One story.

    `words` follow `trainprobe diagnose`. `applied` is a part of the fix that the mended side has,
    as the report must propose it.
    `nofile` (descriptors) and `memory_mib` are limits under which the tool and all of its children
    run. `earlier` is how an earlier run was started, whose launcher is then killed. `shells` are
    exported on the mended side; `lifted` takes the limits of that side away.
    `unsuspected` are causes that this one is often taken for, which the report must rule out or
    leave out.
    """

    name: str
    tells: str
    cause: str
    words: tuple[str, ...]
    applied: str
    verdicts: tuple[str, ...] = ("crashed",)
    unsuspected: tuple[str, ...] = ()
    nofile: int | None = None
    memory_mib: int | None = None
    earlier: tuple[str, ...] = ()
    left: int = 0
    shells: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    stand_in: str = ""

    @property
    def folder(self) -> Path:
        return PROGRAMS / self.name

    def program(self, side: str) -> Path:
        """The program of `side`, broken or mended; one program where only its surroundings
        differ.
        """
        own = self.folder / f"{side}.py"
        return own if own.exists() else self.folder / "broken.py"

    @property
    def beside(self) -> tuple[Path, ...]:
        """Modules that the program imports."""
        return tuple(
            path
            for path in sorted(self.folder.glob("*.py"))
            if path.stem not in ("broken", "mended")
        )

    def digest(self) -> str:
        """What the story was when it ran: its programs, its command and its surroundings."""
        made = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode())
        for path in (self.program("broken"), self.program("mended"), *self.beside):
            made.update(path.read_bytes())
        return made.hexdigest()[:16]


SCRIPT = ("--only", "host,user_script")
STORIES = (
    Story(
        name="clips",
        tells=(
            "three loaders, training, validation and test, alive together with their workers under"
            " `ulimit -n 128`"
        ),
        cause="fd-exhaustion",
        words=(*SCRIPT, "--ranks", "2", "--rows", "16,1000", "--", "train.py", "--rows", "{rows}"),
        applied="set_sharing_strategy('file_system')",
        nofile=128,
    ),
    Story(
        name="captions",
        tells=(
            "a data set whose `__getstate__` leaves its rows out, so that spawned workers get none"
        ),
        cause="dataset-lost-in-pickling",
        words=(
            "--only",
            "scaled_dataset",
            "--nproc",
            "2",
            "--dataset",
            "train.py:train_set",
            "--batch-size",
            "8",
            "--rows",
            "20,200",
            "--workers",
            "0,2",
        ),
        applied="__setstate__",
        verdicts=("at-risk", "crashed"),
        unsuspected=("trainer-removed-columns",),
    ),
    Story(
        name="columns",
        tells="a collator that needs a column which the Trainer has dropped, with two workers",
        cause="trainer-removed-columns",
        words=(
            *(
                "--only",
                "scaled_dataset,user_script",
                "--ranks",
                "2",
                "--rows",
                "200",
                "--workers",
                "2",
            ),
            *(
                "--dataset",
                "train.py:train_set",
                "--collate",
                "train.py:collate",
                "--",
                "train.py",
                "--max_train_samples",
                "{rows}",
            ),
        ),
        applied="remove_unused_columns=False",
        unsuspected=("dataset-lost-in-pickling",),
        needs=("transformers", "datasets", "accelerate"),
    ),
    Story(
        name="lexicon",
        tells=(
            "a module that needs 0.8 GB for a moment while it is imported, on three ranks at once"
            " in a container of 1.7 GB"
        ),
        cause="import-storm",
        words=("--only", "import_memory,user_script", "--ranks", "3", "--", "train.py"),
        applied="trainprobe.import_lock()",
        memory_mib=1700,
    ),
    Story(
        name="dedup",
        tells="each row is compared with all before it",
        cause="dataset-scaling",
        words=(
            *SCRIPT,
            "--ranks",
            "2",
            "--rows",
            "2,1000,2000,4000",
            "--planned",
            "rows=1M",
            "--",
            "train.py",
            "--rows",
            "{rows}",
        ),
        applied="for each row over all rows",
        verdicts=("at-risk",),
    ),
    Story(
        name="cache",
        tells=(
            "a rank that holds a file lock asks all ranks how far they are; one of them waits for"
            " the lock"
        ),
        cause="file-lock-held",
        words=(*SCRIPT, "--ranks", "2", "--rows", "2,10000", "--", "train.py", "--rows", "{rows}"),
        applied="lock",
        verdicts=("hung",),
    ),
    Story(
        name="tokens",
        tells=(
            "a child is joined before its queue is emptied; what two rows give fits into the pipe"
        ),
        cause="queue-deadlock",
        words=(*SCRIPT, "--ranks", "2", "--rows", "2,10000", "--", "train.py", "--rows", "{rows}"),
        applied="then process.join()",
        verdicts=("hung",),
    ),
    Story(
        name="index",
        tells=(
            "documents as dicts of lists, copied into each rank and each worker; planned with two"
            " million rows in 8 GB"
        ),
        cause="dataset-memory-blowup",
        words=(
            *(
                "--only",
                "scaled_dataset",
                "--nproc",
                "2",
                "--dataset",
                "train.py:train_set",
                "--batch-size",
                "32",
                "--rows",
                "1000,4000,16000",
            ),
            *("--workers", "0,2", "--planned", "rows=2M,ranks=8,workers=4"),
        ),
        applied="mmap_mode='r'",
        verdicts=("at-risk",),
        memory_mib=8192,
    ),
    Story(
        name="reruns",
        tells="nineteen processes of a run whose launcher was killed; one of them holds the port",
        cause="leftover-processes",
        words=(*SCRIPT, "--ranks", "2", "--", "python", "train.py", "--ranks", "{ranks}"),
        applied="kill ",
        earlier=("python", "train.py", "--workers", "4", "--epochs", "1000000", "--pause", "1"),
        left=19,
    ),
    Story(
        name="pool",
        tells="a forked pool computes after its parent has used OpenMP",
        cause="fork-thread-pool",
        words=(*SCRIPT, "--ranks", "2", "--rows", "100", "--", "train.py", "--rows", "{rows}"),
        applied="set_num_threads",
        verdicts=("hung",),
    ),
    Story(
        name="mapping",
        tells=(
            "`datasets.map(num_proc=1)` forks a process of a parent that has used the accelerator"
        ),
        cause="cuda-in-forked-worker",
        words=(*SCRIPT, "--nproc", "1", "--", "train.py"),
        applied="num_proc=None",
        needs=("datasets",),
        stand_in=(
            "No GPU: `torch.cuda` was told that it had been initialised; the fork, the check in the"
            " child and its words are torch's own."
        ),
    ),
    Story(
        name="replicas",
        tells="`nn.DataParallel` because two GPUs are visible to one plain process",
        cause="accidental-data-parallel",
        words=("--only", "host,user_script", "--nproc", "1", "--", "python", "train.py"),
        applied="CUDA_VISIBLE_DEVICES=0",
        shells=(("CUDA_VISIBLE_DEVICES", "0"),),
        stand_in=(
            "No GPU: split, copies and joining were done on the CPU; the threads of the replicas"
            " and their words are torch's own."
        ),
    ),
)
BY_NAME = {story.name: story for story in STORIES}
