"""Draws one job from a seed: its files, its command, and, apart from them, the truth."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.gallery.live.generated.bases import data, frameworks, loops, models, pipelines
from tests.gallery.live.generated.fault import DATA, Act, Fault, Mechanism, Situation
from tests.gallery.live.generated.launchers import LAUNCHERS, launch
from tests.gallery.live.generated.mechanisms import ALL
from tests.gallery.live.generated.template import filled, marked, named, without_mark
from tests.gallery.live.generated.vocabulary import words

HEALTHY_SHARE = 0.25
TORCHRUN = ("torchrun", "torchrun-logs", "module")
# Framework to how often it is drawn and the launchers that start it.
FRAMEWORKS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "ddp": (4, LAUNCHERS),
    "fsdp2": (3, LAUNCHERS),
    "tp": (2, LAUNCHERS),
    "datasets": (2, LAUNCHERS),
    "dcp": (2, LAUNCHERS),
    "pipeline-by-hand": (2, LAUNCHERS),
    "pipeline-scheduled": (1, LAUNCHERS),
    "trainer": (2, ("torchrun", "torchrun-logs", "module", "bash", "popen", "accelerate")),
    "accelerate": (2, ("torchrun", "module", "accelerate", "bash", "popen", "spawn")),
    "lightning": (2, (*TORCHRUN, "lightning")),
}
HUGE = ("trainer", "accelerate", "lightning", "datasets")  # seconds of imports for each rank
LIBRARIES = {
    "trainer": "transformers", "accelerate": "accelerate", "lightning": "lightning",
    "datasets": "datasets",
}  # fmt: skip
MAPPED = ("tensors", "shards", "lines", "line-shards")


@dataclass(frozen=True)
class Truth:
    """What is wrong. `ranks` are the sets that are right; `line` is where it was put in."""

    cause: str
    also: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    verdicts: tuple[str, ...]
    mechanism: str
    family: str
    framework: str
    place: str
    launcher: str
    world: int
    line: str


@dataclass(frozen=True)
class Job:
    """What is written and started, and how one sees that it has come to what was planned."""

    seed: int
    files: Mapping[str, str]
    command: tuple[str, ...]
    truth: Truth
    beside: tuple[str, ...]
    act: Act | None
    settled: str  # still, advancing or slow
    first_steps: int
    still_s: float
    history: str  # rank 0 or the framework writes a line for each step
    look_after_s: float  # once it has settled
    types_a_rank: bool  # the user types the pid of a rank, where nothing but a shell started them
    environ: Mapping[str, str] = field(default_factory=dict)


def job_of(seed: int) -> Job:
    """The job of a seed; the same one each time."""
    rng = _rng(seed)
    mechanism = _mechanism(rng)
    framework = _framework(rng, mechanism)
    return _made(seed, rng, mechanism, framework)


def mechanism_of(seed: int) -> Mechanism:
    return _mechanism(_rng(seed))


def _rng(seed: int) -> random.Random:
    return random.Random(f"job {seed}")


def _mechanism(rng: random.Random) -> Mechanism:
    """A healthy kind in a quarter of the draws, else one of the others."""
    healthy = rng.random() < HEALTHY_SHARE
    kinds = [kind for kind in ALL.values() if (kind.family == "healthy") == healthy]
    weights = [1 / _size(kinds, kind.family) ** 0.5 for kind in kinds]  # large families more often
    return rng.choices(kinds, weights)[0]


def _size(kinds: list[Mechanism], family: str) -> int:
    return sum(kind.family == family for kind in kinds)


def _framework(rng: random.Random, mechanism: Mechanism) -> str:
    choices = {
        name: weight
        for name, (weight, launchers) in FRAMEWORKS.items()
        if (not mechanism.frameworks or name in mechanism.frameworks)
        and (not mechanism.launchers or set(launchers) & set(mechanism.launchers))
        and (mechanism.places == ("outside",) or _places(name) & set(mechanism.places))
    }
    return rng.choices(list(choices), list(choices.values()))[0]


def _places(framework: str) -> set[str]:
    places = {"loop", "after", "eval", "ckpt", "metrics", "hook", *DATA}
    if framework not in HUGE or framework == "datasets":
        places |= {"setup", "shard"}
    return places - {"metrics"} if framework == "pipeline-scheduled" else places


def _made(seed: int, rng: random.Random, mechanism: Mechanism, framework: str) -> Job:
    launcher = rng.choice(
        [
            name
            for name in FRAMEWORKS[framework][1]
            if not mechanism.launchers or name in mechanism.launchers
        ]
    )
    sizes = {"tp": (2, 4)}.get(framework, (2, 2, 3) if framework in HUGE else (2, 3, 3, 4))
    world = rng.choice(sizes)
    rank = rng.randrange(world) if mechanism.rank is None else mechanism.rank
    possible = {"outside", *_places(framework)}
    place = rng.choice([place for place in mechanism.places if place in possible])
    step = rng.randint(5, 11)
    workers = rng.choice((1, 2)) if mechanism.workers else rng.choice((0, 0, 1, 2))
    rows = _rows(rng, mechanism, framework)
    who = _who(rng, place, rank, world)
    situation = Situation(
        rng, framework, launcher, world, rank, place, step, place in DATA and workers > 0,
        _when(rng, place, who, rows, rank, world, step, framework, workers), who,
    )  # fmt: skip
    fault = mechanism.make(situation)
    vocabulary = {
        **words(rng),
        "workers": str(workers),
        "eval_every": str(rng.randint(7, 12)),
        "save_every": str(rng.randint(8, 15)),
        "average_every": str(rng.randint(2, 5)),
        "per_epoch": mechanism.options.get("per_epoch", str(rng.randint(40, 90))),
    }
    parts = _parts(rng, framework, rows, rank, mechanism)
    return _assembled(seed, rng, situation, mechanism, fault, vocabulary, parts)


def _rows(rng: random.Random, mechanism: Mechanism, framework: str) -> str:
    if mechanism.options.get("data") == "cut":
        return rng.choice(data.CUT)
    if framework == "datasets":
        return rng.choice(data.HUGGING)
    if framework.startswith("pipeline"):
        return rng.choice([name for name in data.PLAIN if data.SETS[name][1] == "dense"])
    return rng.choice(MAPPED if framework in HUGE else data.PLAIN)


def _who(rng: random.Random, place: str, rank: int, world: int) -> str:
    if place in (*DATA, "made"):
        return rng.choice([f'int(os.environ["RANK"]) == {rank}', f'os.environ["RANK"] == "{rank}"'])
    ways = [f"$rank == {rank}", f"{rank} == $rank"]
    if rank == 0:
        ways += ["not $rank", "$rank < 1"]
    if rank == world - 1:
        ways += [f"$rank == {world} - 1", f"$rank > {rank - 1}"]
    return rng.choice(ways)


def _when(
    rng: random.Random, place: str, who: str, rows: str, rank: int, world: int, step: int,
    framework: str, workers: int,
) -> str:  # fmt: skip
    """True at that rank from that step on. A row is known by its number where each rank reads
    every so many rows, else by how many were read.
    """
    if place == "getitem":
        if rows in MAPPED and framework in ("ddp", "fsdp2", "dcp") and rng.random() < 0.6:
            return f"$index == {rank + world * (8 * step + rng.randrange(8))}"
        return f"self.$served == {8 * step // max(workers, 1) + rng.randrange(8)} and {who}"
    if place == "collate":
        return f'$stats["batches"] == {max(step // max(workers, 1), 2)} and {who}'
    exact = place in ("loop", "after") and framework != "trainer" and rng.random() < 0.4
    return f"{who} and $step {'==' if exact else '>='} {step}"


def _parts(
    rng: random.Random, framework: str, rows: str, rank: int, mechanism: Mechanism
) -> tuple[str, str, str]:
    """The text of the data, of the model and of the program, with their holes."""
    data_text = data.HEAD + data.SETS[rows][0]
    block = rng.choice(models.BLOCKS)
    if framework.startswith("pipeline"):
        by_hand = framework == "pipeline-by-hand"
        train = pipelines.BY_HAND if by_hand else pipelines.SCHEDULED
        head = loops.HEAD.replace("#: framework_imports\n", "" if by_hand else pipelines.IMPORTS)
        model = models.HEAD + block + "\n" + pipelines.STAGE
        return (
            data_text,
            model,
            head + pipelines.EVALUATE + pipelines.SAVE + loops.SETUP + train + pipelines.MAIN,
        )
    model = (
        models.HEAD
        + block
        + rng.choice(models.DENSE if data.SETS[rows][1] == "dense" else models.TOKENS)
    )
    if framework in LIBRARIES and framework != "datasets":
        text = {
            "trainer": frameworks.TRAINER,
            "accelerate": frameworks.ACCELERATE,
            "lightning": frameworks.LIGHTNING,
        }[framework]
        return data_text, model, frameworks.HEAD + text
    wrap = framework if framework in loops.WRAP else "ddp"
    if framework == "dcp":
        wrap = rng.choice(("ddp", "fsdp2"))
    ways: tuple[str, ...] = {"ddp": ("torch", "parts-by-file", "parts-by-store")}.get(
        wrap, ("dcp", "parts-by-file")
    )
    if mechanism.options.get("save") == "parts":
        ways = ("parts-by-file",) if rank == 0 else ("parts-by-file", "parts-by-store")
    save = rng.choice(("dcp", "dcp-async") if framework == "dcp" else ways)
    style = rng.choice(loops.STYLES).replace("@SHARE@", loops.SHARE[wrap])
    imports = loops.IMPORTS[wrap] + (loops.IMPORTS["dcp"] if save.startswith("dcp") else "")
    if "argparse" in style:
        imports = "import argparse\n" + imports
    head = loops.HEAD.replace("#: framework_imports\n", imports)
    return (
        data_text,
        model,
        head
        + loops.WRAP[wrap]
        + rng.choice(loops.EVALUATE)
        + loops.SAVE[save]
        + loops.SETUP
        + style,
    )


def _assembled(
    seed: int, rng: random.Random, s: Situation, mechanism: Mechanism, fault: Fault,
    vocabulary: Mapping[str, str], parts: tuple[str, str, str],
) -> Job:  # fmt: skip
    names = dict(vocabulary)
    own = {"definitions": fault.definitions, "imports": fault.imports}
    code = {s.place: marked(fault.code)} if fault.code.strip() else {}
    data_text, model_text, main_text = parts
    in_data = s.place in (*DATA, "shard")
    holes = {**fault.inserts, **code}
    for place, more in fault.inserts.items():
        if place in code:
            holes[place] = code[place] + more
    data_text = filled(data_text, {**holes, **(own if in_data else {})})
    main_text = filled(main_text, {**holes, **({} if in_data else own)})
    script = f"{names['train_file']}.py"
    world = s.world
    start = launch(s.launcher, script, world, fault.world_says or world, rng)
    texts = _files(rng, data_text, model_text, main_text + start.tail, names)
    texts |= {**fault.files, **start.files}
    files, line = {}, ""
    for name, text in texts.items():
        plain = named(name, names)
        files[plain], number = without_mark(
            text if plain in ("run.sh", "launch.py") else named(text, names)
        )
        line = f"{plain}:{number}" if number else line
    if "corpus.txt" in data_text:
        files["corpus.txt"] = _corpus(rng)
    act = fault.act
    if act and act.once_exists:
        act = Act(act.signal, act.whom, act.rank, act.after_steps, named(act.once_exists, names))
    truth = Truth(
        fault.cause, fault.also, tuple(tuple(ranks) for ranks in fault.ranks), fault.verdicts,
        mechanism.name, mechanism.family, s.framework, s.place, s.launcher, s.world, line,
    )  # fmt: skip
    environ = {"DEVICES": str(world)} if s.framework == "lightning" else {}
    return Job(
        seed, files, start.command, truth, tuple(named(name, names) for name in fault.beside), act,
        fault.settled, 2 if fault.first_steps < 0 else fault.first_steps, fault.still_s, names["history"],
        round(rng.uniform(0, 4), 1), rng.random() < 0.5, {**environ, **fault.environ},
    )  # fmt: skip


def _files(
    rng: random.Random, data_text: str, model_text: str, main_text: str, names: Mapping[str, str]
) -> dict[str, str]:
    """One file, two or three."""
    script = f"{names['train_file']}.py"
    loader = "\nfrom torch.utils.data import DataLoader\n"
    if rng.random() < 0.4:
        return {script: _joined(data_text, model_text, main_text)}
    given = [
        f"${name}" for name in ("collate", "Dataset", "make_loader") if f"${name}" in data_text
    ]
    data_import = f"from {names['data_file']} import {', '.join(given)}\n{loader if 'DataLoader(' in main_text else ''}"
    if rng.random() < 0.5:
        return {
            f"{names['data_file']}.py": data_text,
            script: _joined(model_text, data_import + main_text),
        }
    return {
        f"{names['data_file']}.py": data_text,
        f"{names['model_file']}.py": model_text,
        script: f"from {names['model_file']} import $Net\n{data_import}\n{main_text}",
    }


def _joined(*texts: str) -> str:
    """The texts with the plain imports of all of them first, each once."""
    head: dict[str, None] = {}
    bodies = []
    for text in texts:
        lines = text.splitlines()
        for line in lines:
            if line.startswith(("import ", "from ")):
                head[line] = None
        bodies.append(
            "\n".join(line for line in lines if not line.startswith(("import ", "from ")))
        )
    return "\n".join([*head, "", *bodies]) + "\n"


def _corpus(rng: random.Random) -> str:
    syllables = ("ka", "to", "mi", "re", "sol", "an", "du", "pe", "li", "or")
    lines = []
    for _ in range(200):
        count = rng.randint(12, 20)
        lines.append(
            " ".join("".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(count))
        )
    return "\n".join(lines) + "\n"
