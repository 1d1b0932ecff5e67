"""Reads the progress of a training from bars, tables and lines of the usual frameworks, and from
lines that people write themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

READ = 2000


class Step(NamedTuple):
    """The progress in one line. Numbers are as printed: the line does not say whether a step counts
    from 0, or within its epoch.

    `kind`: train, eval, save, load, data, compile or unknown. `finished`: the line says that the
    training has completed.
    """

    step: int | None = None
    of: int | None = None
    epoch: float | None = None
    of_epochs: int | None = None
    kind: str = "unknown"
    finished: bool = False


_BAR = re.compile(
    r"(?P<percent>\d{1,3})%[^\d%]{0,3}\|[^|]{0,400}\|\s{0,4}(?P<n>\d{1,12}(?:\.\d{1,4})?[kMGTKB]{0,2})/(?P<of>\d{1,12}(?:\.\d{1,4})?[kMGTKB]{0,2})"
    r" ?\[(?P<rest>.{0,400})"
)
_COUNT = re.compile(
    r"(?<![\d.])(?P<n>\d{1,9})(?:/(?P<of>\d{1,9})|it| examples) \[\d{1,3}:\d\d(?P<rest>.{0,200})"
)
_RICH = re.compile(
    r"(?:[\u2501\u2578\u257a\u2500\u2588#=\u2014.>-]{6,400}"
    r"|[\u2501\u2578\u257a]{1,400})\s{1,8}(?P<n>\d{1,9})/(?P<of>\d{1,9})\s{1,4}\d{1,4}:\d\d"
)
_EPOCH = re.compile(
    r"\bepochs?\b['\"]?[ ]{0,3}[:=#]?[ ]{0,3}['\"]?[\[(]?[ ]{0,4}(?P<e>\d{1,6}(?:\.\d{1,9})?)(?:["
    r" ]{0,3}(?:/|of)[ ]{0,3}(?P<of>\d{1,6}))?",
    re.IGNORECASE,
)
# `step 3`, `Step: 3/100`, `step=3`, `iter 10`, `iteration 7`, `[10/100]` behind such a word. Not
# `steps: 100`, which is a plan.
_STEP = re.compile(
    r"\b(?:global[_ ]?step|opt(?:imizer)?[_ ]step|train[_"
    r" ]step|step|iter(?:ation)?|it|batch|update|num_updates|round)\b[ \"']{0,2}[:=#]?["
    r" ]{0,3}[\"']?[\[(]?[ ]{0,12}"
    r"(?P<n>\d{1,9})(?!\.?\d)(?:[ ]{0,6}(?:/|of)[ ]{0,12}(?P<of>\d{1,9})(?!\.?\d))?",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:after|ran|ran for|trained|trained for|did|took|completed|finished|made|finished in)"
    r" (?P<n>\d{1,9}) (?:training )?(?:steps|iterations|batches|updates)\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"\b0 (?:steps|iterations|batches|updates)\b|\bno (?:steps|batches) (?:were"
    r" )?(?:run|taken|made)\b",
    re.IGNORECASE,
)
_LOSS = re.compile(r"\bloss\b['\"]?[ ]{0,2}[:=]?[ ]{0,2}['\"]?[-+]?(?:\d|nan|inf)", re.IGNORECASE)
_ANY_LOSS = re.compile(
    r"loss\b['\"]?[ ]{0,2}[:=(]?[ ]{0,2}['\"]?[-+]?(?:\d|nan|inf)|\bgrad[_ ]norm\b|\blr\b["
    r" :=]{1,3}[\d\[]",
    re.IGNORECASE,
)
_TRAINS = re.compile(r"\btrain|\bloss\b", re.IGNORECASE)
_DECIMAL = re.compile(r"\d\.\d")
# Words of a plan or a setting, not of progress; one of _PLAN_WORDS stands in each of them.
_PLAN_WORDS = ("total", "max", "num", "every", "warm", "accumulation", "planned", "per")
_PLAN = re.compile(
    r"\b(?:total|max|num|number of|every|warm-?up|accumulation|planned|per)\b", re.IGNORECASE
)

# The kind of work of a bar or a line; the first match counts.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            "load",
            (
                r"loading (?:checkpoint|pipeline|safetensors|weights|model|pretrained|the"
                r" weights|tokenizer)|checkpoint shards|\bloading weights|materializing"
                r" param|restor(?:e|ing) (?:from|checkpoint)|resum(?:e|ed|ing)\b|continuing"
                r" (?:training )?from|will skip the first|skipping the first|loaded"
                r" .{0,60}checkpoint|restored|start(?:ing|s)? (?:training )?(?:from|at) (?:global"
                r" )?(?:step|epoch|iter)"
            ),
        ),
        (
            "save",
            (
                r"\bsav(?:e|ed|ing) (?:(?:model|optimizer|training) )?(?:state|check"
                r" ?points?|model|weights|optimizer|snapshot)|\bsav(?:ing|ed)"
                r" .{0,60}\bcheckpoint|saving checkpoint|writing"
                r" (?:checkpoint|model)|upload(?:ing|\b)"
            ),
        ),
        (
            "data",
            (
                r"^\s{0,4}(?:map|filter|flatten|casting?|sort|shuffl\w{1,4}|pack\w{0,4})\b"
                r"|generating"
                r" .{0,60}split|tokeniz|tokenis|grouping|\bmap \(num_proc|running"
                r" tokenizer|download|fetching|resolving"
                r" data|preprocess|pre-process|extracting|computing checksums|saving the"
                r" dataset|loading dataset|creating .{0,40}from|caching|scanning|indexing|building"
                r" .{0,30}(?:index|dataset|vocab|map)|adding eos|truncating|concatenat|converting"
                r" train|applying chat template|reading|parsing|dataset shards"
            ),
        ),
        (
            "compile",
            (
                r"compil(?:ing|e\b|ation)|capturing cuda|cuda graph|autotun|inductor|building"
                r" extension|warming up|profil"
            ),
        ),
        (
            "eval",
            (
                r"\bval(?:id|idation|idating|idate)?\b|\beval\w{0,8}|\btest(?:ing)?\b|sanity"
                r" check|predict|\binference\b|generating\b|validation_|\bbenchmark"
            ),
        ),
        (
            "train",
            (
                r"\btrain\w{0,8}|\bfit(?:ting)?\b|\bfine-?tun|\bpretrain|\bsft\b|\bppo\b|\bgrpo\b"
                r"|\bepoch\b|\bsteps?\b|\biter(?:ation)?s?\b|\bupdate\b"
            ),
        ),
    )
)
_FINISHED = re.compile(
    r"Training completed\. Do not forget to share your"
    r" model|['\"]train_runtime['\"]?\s{0,2}[:=]|^\s{0,4}train_runtime\s{1,40}=|\*{3,} train"
    r" metrics \*{3,}"
    r"|`?Trainer\.fit`? stopped: `?(?:max_(?:steps|epochs|time)|No training batches)|\[after"
    r" training is done\]|\bdone training in \d|\btraining (?:has |is |was )?(?:successfully"
    r" )?(?:completed|finished|done|ended)\b"
    r"|\b(?:finished|completed|done with|done) (?:the"
    r" )?(?:training|pre-?training|fine-?tuning)\b|\b(?:fine-?tuning|pre-?training)"
    r" (?:completed|finished|done)\b"
    r"|^\W{0,6}Training time:? \d|\b\d{1,6} epochs completed in \d|\bTraining took \d|\bSaved final"
    r" (?:weights|model|checkpoint|adapters?)\b|\btotal training time\b|worker group successfully"
    r" finished|Training finished!?|Training complete\b"
    # nccl-tests, src/common.cu
    r"|^# (?:Avg bus bandwidth|Collective test concluded)",
    re.IGNORECASE,
)
# The same words about a part of the training, or about something that has not happened.
_UNFINISHED = re.compile(
    r"\b(?:not|n't|before|until|when|once|if|will|unless|while|expected|should)\b|\bepoch \d|\bstep"
    r" \d{1,9} (?:completed|finished|done)|%\s{0,3}of\b|\berror|\bfailed",
    re.IGNORECASE,
)
_STOPPED_AT = re.compile(r"max_steps=(\d{1,9})|max_epochs=(\d{1,6})")
_HINT = re.compile(
    r"%|step|iter|epoch|batch|update|round|loss|train|done|finish|complet|\bit\b|it"
    r" \[|test|valid|\d/\d|examples|sav|load|fit|\u2501|eval|compil|cuda graph|bandwidth",
    re.IGNORECASE,
)


# Most lines of a log differ in digits only, and their words decide whether they show progress, an
# end or a kind of work. So results are remembered by shape, which takes a fiftieth of the time.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_SHAPE_CAP = 300
_SHAPES_CAP = 4000
_SILENT: set[bytes] = set()
_NOT_FINISHED: set[bytes] = set()


def _shape_of(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(_DIGITS)


def _is_known(shape: bytes, known: set[bytes]) -> bool:
    return len(shape) <= _SHAPE_CAP and shape in known


def _learn(shape: bytes, known: set[bytes]) -> None:
    if len(shape) <= _SHAPE_CAP:
        if len(known) >= _SHAPES_CAP:
            known.clear()
        known.add(shape)


def read_step(line: str) -> Step | None:
    """Return the progress in a plain line, or None. Never raises; reads 2000 characters at most."""
    text = line[:READ]
    shape = _shape_of(text)
    if _is_known(shape, _SILENT):
        return None
    found = _read(text, shape)
    # Some patterns distinguish 0 from other digits.
    if found is None and b" 0:" not in shape and b"0 " not in shape:
        _learn(shape, _SILENT)
    return found


def _read(text: str, shape: bytes) -> Step | None:
    if not _is_known(shape, _NOT_FINISHED):
        if _HINT.search(text) is None:
            return None
        done = _finished(text)
        if done is not None:
            return done
        _learn(shape, _NOT_FINISHED)
    for literal, read in _FORMS:
        if literal in text:
            found = read(text)
            if found is not None:
                return found
    return _plain(text) if b"0" in shape else _activity(text)


def kind_of(text: str) -> str:
    """Return the kind of work of a bar with this description, or of a line: train, eval, save,
    load, data, compile or unknown.
    """
    return _kind_of(text) if len(text) > _SHAPE_CAP else _kind_of_shape(_shape_of(text))


@functools.lru_cache(maxsize=_SHAPES_CAP)
def _kind_of_shape(shape: bytes) -> str:
    return _kind_of(shape.decode("utf-8", "replace"))


def _kind_of(text: str) -> str:
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    return "unknown"


def steps_in(line: str) -> list[int]:
    """Return every step number in a line, in order, but for those of a plan or a setting."""
    text = line[:READ]
    patterns = (_COUNT, _DONE) if _PLAN.search(text) else (_STEP, _COUNT, _DONE)
    numbers = [int(match.group("n")) for pattern in patterns for match in pattern.finditer(text)]
    return [*numbers, 0] if _NONE.search(text) else numbers


def has_loss(line: str) -> bool:
    """Whether the line has a loss, or a step and a decimal number: at least one step is done."""
    text = line[:READ]
    return _LOSS.search(text) is not None or (
        _STEP.search(text) is not None and _DECIMAL.search(text) is not None
    )


def _finished(text: str) -> Step | None:
    match = _FINISHED.search(text)
    if match is None or (
        _UNFINISHED.search(text)
        and "train_runtime" not in match.group(0)
        and "Do not forget" not in text
    ):
        return None
    steps = _STOPPED_AT.search(text)
    epoch, of = _epoch(text)
    if steps is not None:
        step = int(steps.group(1)) if steps.group(1) else None
        epochs = int(steps.group(2)) if steps.group(2) else None
        return Step(step, step, epochs, epochs, "train", finished=True)
    took = _DONE.search(text)
    none = _NONE.search(text)
    return Step(
        int(took.group("n")) if took else 0 if none else None,
        None,
        epoch,
        of,
        "train",
        finished=True,
    )


def _epoch(text: str) -> tuple[float | None, int | None]:
    match = _EPOCH.search(text)
    if match is None:
        return None, None
    return float(match.group("e")), int(match.group("of")) if match.group("of") else None


class Bar(NamedTuple):
    """A bar of tqdm: `name` is the text before it, `ran_s` for how long it had run and `left_s` for
    how long it would still take, seconds, None where it does not tell.
    """

    name: str
    step: int
    of: int | None
    kind: str
    ran_s: float | None
    left_s: float | None


# `[1:57:00<00:30, …`, also with days before the hours, and with `?` for what is not known
_CLOCKS = re.compile(r"(?P<ran>(?:\d{1,4}:){1,3}\d\d)(?:<(?P<left>(?:\d{1,4}:){1,3}\d\d|\?))?")


# Notebooks draw the bar itself in HTML, and terminals without such characters leave it out.
_DRAWN_OTHERWISE = re.compile(r"\d{1,9}/\d{1,9} \[(?P<rest>(?:\d{1,4}:){1,3}\d\d<.{0,200})")


def read_bar(line: str) -> Bar | None:
    """Return the last bar in a plain line, or None. Never raises; reads 2000 characters at most."""
    text = line[:READ]
    match = next(reversed(list(_BAR.finditer(text))), None) if "%|" in text else None
    told = _bar(text) if match is not None else None
    if match is None and "<" in text and (match := _DRAWN_OTHERWISE.search(text)) is not None:
        told = _plain(text)
    if match is None or told is None or told.step is None:
        return None
    clocks = _CLOCKS.match(match.group("rest"))
    return Bar(
        text[: match.start()][-160:].strip(" :"),
        told.step,
        told.of,
        told.kind,
        _seconds(clocks["ran"]) if clocks else None,
        _seconds(clocks["left"]) if clocks and clocks["left"] else None,
    )


def _seconds(clock: str) -> float | None:
    if "?" in clock:
        return None
    parts = [int(part) for part in clock.split(":")]
    return float(sum(part * unit for part, unit in zip(reversed(parts), (1, 60, 3600, 86400))))


_POWERS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _amount(text: str) -> int:
    number = text.rstrip("kMGTKB")
    unit = text[len(number) :].rstrip("B").replace("K", "k")
    return int(float(number) * _POWERS.get(unit, 1))


def _bar(text: str) -> Step | None:
    matches = list(_BAR.finditer(text))
    if not matches:
        return None
    match = matches[-1]
    start = matches[-2].end("of") if len(matches) > 1 else 0
    description = text[start : match.start()][-160:].strip(" :")
    kind = kind_of(description) if description else "unknown"
    if kind in ("unknown", "compile") and _ANY_LOSS.search(match.group("rest")):
        kind = "train"
    if kind == "unknown" and ("B/s" in match.group("rest") or match.group("of").endswith("B")):
        kind = "data"
    epoch, of_epochs = _epoch(description)
    if description.lower().startswith("epoch") and kind in ("unknown", "train"):
        kind = "train"
    return Step(_amount(match.group("n")), _amount(match.group("of")), epoch, of_epochs, kind)


def _rich(text: str) -> Step | None:
    match = _RICH.search(text)
    if match is None:
        return None
    description = text[: match.start()]
    epoch, of_epochs = _epoch(description)
    return Step(
        int(match.group("n")), int(match.group("of")), epoch, of_epochs, kind_of(description)
    )


_TRAINER = re.compile(
    r"\{\s?['\"](?:[a-z]{1,20}_)?(?:loss|[a-z_]{1,40})['\"]:.{0,1500}['\"]epoch['\"]:"
    r" ?['\"]?(?P<e>\d{1,6}(?:\.\d{1,12})?)"
)
_TRAINER_STEP = re.compile(r"['\"](?:global_?step|step|num_updates)['\"]: ?['\"]?(\d{1,9})\b")


def _trainer(text: str) -> Step | None:
    match = _TRAINER.search(text)
    if match is None:
        return None
    step = _TRAINER_STEP.search(text)
    kind = "eval" if "eval_" in text or "'eval" in text else "train"
    return Step(int(step.group(1)) if step else None, None, float(match.group("e")), None, kind)


_N = r"\s{0,8}(?P<n>\d{1,9})"
_N_OF = rf"\[{_N}/\s{{0,8}}(?P<of>\d{{1,9}})"
_PLANNED = r"Total optimization steps = (?P<of>\d{1,9}(?:,\d{3}){0,3})"
_EPOCH_MM = r"\bEpoch\(train\)\s{1,4}\[(?P<e>\d{1,6})\]\s{0,4}"
_EPOCH_BATCH = (
    r"\bEpoch:? ?\[(?P<e>\d{1,6})(?:/\d{1,6})?\][ ,:-]{0,6}(?:(?:Step|Batch|Iter):? ?)?" + _N_OF
)
_EVAL_MM = r"\s{1,4}(?:\[(?P<e>\d{1,6})\]\s{0,4})?" + _N_OF + r"\]"
_SIMPLE: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (literal, kind, re.compile(pattern))
    for literal, kind, pattern in (
        # Megatron, and NeMo and DeepSpeed's fork of it
        ("validation loss at", "eval", r"validation loss at iteration\s{1,12}(?P<n>\d{1,9})"),
        (
            "checkpoint at iteration",
            "save",
            r"sav(?:ed? ?(?:ing)?|ing) checkpoint at iteration\s{1,12}(?P<n>\d{1,9})",
        ),
        ("iteration", "train", r"\biteration\s{1,12}(?P<n>\d{1,9})/\s{0,12}(?P<of>\d{1,9}) \|"),
        # DeepSpeed
        ("skipped=", "train", r"\bstep=(?P<n>\d{1,9}), skipped=\d"),
        ("iter time (s)", "train", r"\bsteps: (?P<n>\d{1,9}) loss: "),
        # MMEngine and mmcv
        ("(train)", "train", _EPOCH_MM + _N_OF + r"\]"),
        ("(train)", "train", r"\bIter\(train\)\s{1,4}" + _N_OF + r"\]"),
        ("(val)", "eval", r"\b(?:Epoch|Iter)\(val\)" + _EVAL_MM),
        ("(test)", "eval", r"\b(?:Epoch|Iter)\(test\)" + _EVAL_MM),
        # torchvision's references, the ImageNet example, timm, fairseq, the MNIST example
        ("Test:", "eval", r"\bTest:\s{1,4}" + _N_OF + r"\]"),
        ("Train Epoch:", "train", r"Train Epoch: (?P<e>\d{1,6}) " + _N_OF),
        ("Train:", "train", r"\bTrain: (?P<e>\d{1,6}) " + _N_OF),
        ("[", "train", _EPOCH_BATCH + r"\]"),
        ("epoch", "train", r"\bepoch (?P<e>\d{3,6}):\s{1,12}(?P<n>\d{1,9}) / (?P<of>\d{1,9}) "),
        # The header of transformers' Trainer
        ("Total optimization steps", "train", _PLANNED),
        ("Num Epochs", "train", r"Num Epochs = (?P<oe>\d{1,6})"),
        ("max_steps is given", "train", r"max_steps is given.{0,80}?(?P<of>\d{1,9})$"),
        (
            "Steps:",
            "train",
            r"\bEpoch (?P<e>\d{1,6}) \| Batchsize: \d{1,9} \| Steps: (?P<of>\d{1,9})",
        ),
    )
)


def _simple(text: str) -> Step | None:
    for literal, kind, pattern in _SIMPLE:
        if literal not in text:
            continue
        match = pattern.search(text)
        if match is None:
            continue
        part = match.groupdict()
        step, of, epoch, epochs = (part.get(name) for name in ("n", "of", "e", "oe"))
        return Step(_whole(step), _whole(of), float(epoch) if epoch else None, _whole(epochs), kind)
    return None


def _whole(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None


def _plain(text: str) -> Step | None:
    """A line that somebody wrote: `step 10 loss 0.1`, `Epoch 1/3, Step [10/100]`, `120it [00:10,
    12it/s]`.
    """
    count = _COUNT.search(text) if " [" in text else None
    if count is not None:
        description = text[: count.start()].strip(" :")
        of = count.group("of")
        return Step(
            int(count.group("n")),
            int(of) if of else None,
            *_epoch(description),
            kind_of(description) if description else "unknown",
        )
    epoch, of_epochs = _epoch(text)
    small = text.lower()
    if not any(word in small for word in _PLAN_WORDS) or _PLAN.search(text) is None:
        match = _STEP.search(text)
        if match is not None:
            return Step(
                int(match.group("n")), _whole(match.group("of")), epoch, of_epochs, _line_kind(text)
            )
    took = _DONE.search(text)
    if took is not None:
        return Step(int(took.group("n")), None, epoch, of_epochs, _line_kind(text))
    if epoch is not None and (
        _ANY_LOSS.search(text)
        or of_epochs is not None
        or text.lstrip(" =*-#[").lower().startswith(("epoch", "train epoch", "training epoch"))
    ):
        return Step(None, None, epoch, of_epochs, _line_kind(text))
    return _activity(text)


def _line_kind(text: str) -> str:
    kind = kind_of(text)
    return (
        "train" if kind in ("unknown", "compile", "data", "eval") and _TRAINS.search(text) else kind
    )


def _activity(text: str) -> Step | None:
    """A line that begins with what the program does now, without a step number."""
    head = text.strip(" *=-#")[:100]
    if _ACTIVITY.match(head) is None:
        return None
    kind = kind_of(head)
    return Step(kind=kind) if kind != "unknown" else None


_ACTIVITY = re.compile(
    r"(?:saving|saved|writing|loading|restoring|resuming|validating|evaluating|tokeni[sz]ing"
    r"|compiling|generating|downloading|preprocessing|running"
    r" (?:training|evaluation|prediction|validation|tokenizer)"
    r"|start(?:ing|ed)? (?:training|validation|evaluation|eval)|training starts|begin(?:ning)?"
    r" training|building|capturing cuda|configuration saved|model weights saved|sanity checking)\b",
    re.IGNORECASE,
)
_FORMS: tuple[tuple[str, Callable[[str], Step | None]], ...] = (
    ("%", _bar),
    ("\u2501", _rich),
    (" 0:", _rich),
    ("epoch", _trainer),
    ("", _simple),
)
