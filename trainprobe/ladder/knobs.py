"""What can be changed in a failing cell, one thing at a time: our own list as data, and the
user's `--knob name=value`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

How = Literal["", "environment", "option", "witness"]
FOR_THE_WITNESS = "TRAINPROBE_KNOB"
NO_WITNESS = "it is applied from inside the ranks, and the settings leave the witness out"
OFF = ("false", "off", "no")


@dataclass(frozen=True)
class Knob:
    """One of ours. `options` are names of the user's options that would do the same; `env`
    variables do it for every process.

    `inside` says that the witness can apply it in the ranks. `least_gpus` is how many GPUs must be
    visible for it to mean anything.
    """

    name: str
    value: str
    says: str
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False
    least_gpus: int = 0

    @property
    def label(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True)
class Change:
    """A knob, applied: other words for the command (empty: as it was given), other variables, or
    a word to the witness.
    """

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    how: How = ""
    says: str = ""


@dataclass(frozen=True)
class Turn:
    """One knob of an ablation; without a change `because` says why it cannot matter here."""

    label: str
    change: Change | None = None
    because: str = ""


UNCHANGED = Change()
AGAIN = Turn("again", Change(says="nothing was changed"))
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
BATCHES = (
    "per_device_train_batch_size",
    "per_gpu_train_batch_size",
    "train_batch_size",
    "micro_batch_size",
    "global_batch_size",
    "batch_size",
    "batchsize",
    "bs",
)
LENGTHS = (
    "max_seq_length",
    "max_seq_len",
    "max_length",
    "max_len",
    "model_max_length",
    "block_size",
    "seq_length",
    "seq_len",
    "sequence_length",
    "context_length",
)
OURS = (
    Knob("workers", "0", "every DataLoader loads in its own process", inside=True),
    Knob(
        "threads",
        "1",
        "one thread for OpenMP, BLAS and tokenizers",
        env={**dict.fromkeys(ONE_THREAD, "1"), "TOKENIZERS_PARALLELISM": "false"},
    ),
    Knob("start", "spawn", "workers and other children are spawned, not forked", inside=True),
    Knob("gpus", "one", "only the first GPU is visible", least_gpus=2),
    Knob("device", "cpu", "no GPU is visible", env={"CUDA_VISIBLE_DEVICES": ""}, least_gpus=1),
    Knob("batch", "half", "half as many rows in a batch", options=BATCHES, inside=True),
    Knob("length", "half", "sequences half as long", options=LENGTHS),
    Knob("evaluation", "off", "no evaluation of the Trainer", inside=True),
)


def turns(
    argv: Sequence[str],
    given: Sequence[tuple[str, str]],
    environ: Mapping[str, str],
    *,
    gpus: int,
    witness: bool,
) -> tuple[Turn, ...]:
    """All knobs for the command `argv`: those that the user gave first, then ours. `gpus` is how
    many are visible, `witness` whether it may work.
    """
    theirs = [Turn(f"{name}={value}", users(argv, name, value)) for name, value in given]
    taken = {turn.label for turn in theirs}
    return (
        *theirs,
        *(
            _turn(knob, argv, environ, gpus=gpus, witness=witness)
            for knob in OURS
            if knob.label not in taken
        ),
    )


def users(argv: Sequence[str], name: str, value: str) -> Change:
    """The user's own knob: a variable where its name is upper case; else the value of the option
    --NAME, which is added where it is not there.
    """
    if name == name.upper() and any(letter.isalpha() for letter in name):
        return Change(
            env={name: value}, how="environment", says=f"the variable {name} is {value or 'empty'}"
        )
    place = _find(argv, name)
    changed = list(argv)
    if place is None:
        return Change(
            (*changed, f"--{name}", value),
            how="option",
            says=f"--{name} {value} was added to the command",
        )
    word = changed[place]
    if "=" in word:
        changed[place] = f"{word.partition('=')[0]}={value}"
    elif _bare(changed, place) and value.lower() in OFF:
        del changed[place]
        return Change(tuple(changed), how="option", says=f"{word} was taken out of the command")
    elif _bare(changed, place):
        changed.insert(place + 1, value)
    else:
        changed[place + 1] = value
    return Change(
        tuple(changed), how="option", says=f"{word.partition('=')[0]} is {value} in the command"
    )


def _turn(
    knob: Knob, argv: Sequence[str], environ: Mapping[str, str], *, gpus: int, witness: bool
) -> Turn:
    if knob.least_gpus > gpus:
        return Turn(
            knob.label,
            None,
            "no GPU is visible here" if not gpus else "only one GPU is visible here",
        )
    if knob.name == "gpus":
        first = environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
        return Turn(
            knob.label,
            Change(env={"CUDA_VISIBLE_DEVICES": first}, how="environment", says=knob.says),
        )
    if knob.env:
        return Turn(knob.label, Change(env=knob.env, how="environment", says=knob.says))
    for name in knob.options:
        number = _number(argv, name)
        if number == 1:
            return Turn(knob.label, None, f"--{name} is 1 already")
        if number is not None:
            made = users(argv, name, str(number // 2))
            return Turn(
                knob.label, Change(made.argv, how="option", says=f"{made.says}, which was {number}")
            )
    if not knob.inside:
        return Turn(
            knob.label,
            None,
            f"none of its usual options stands in the command (--{knob.options[0]} for one)",
        )
    if not witness:
        return Turn(knob.label, None, NO_WITNESS)
    return Turn(
        knob.label, Change(env={FOR_THE_WITNESS: knob.label}, how="witness", says=knob.says)
    )


def _find(argv: Sequence[str], name: str) -> int | None:
    """The last word that sets option `name`: `--name`, `--name=…`, with dashes or underscores,
    or `name=…` as Hydra has it.
    """
    wanted = _plain(name)
    for place in range(len(argv) - 1, -1, -1):
        word, equals, _ = argv[place].partition("=")
        if _plain(word.lstrip("-")) == wanted and (word.startswith("--") or equals):
            return place
    return None


def _number(argv: Sequence[str], name: str) -> int | None:
    place = _find(argv, name)
    if place is None:
        return None
    _, equals, value = argv[place].partition("=")
    if not equals:
        value = "" if _bare(argv, place) else argv[place + 1]
    return int(value) if value.isdecimal() and int(value) > 0 else None


def _bare(argv: Sequence[str], place: int) -> bool:
    return place + 1 >= len(argv) or argv[place + 1].startswith("--")


def _plain(name: str) -> str:
    return name.replace("-", "_")
