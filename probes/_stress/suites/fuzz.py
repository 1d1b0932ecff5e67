"""Random configurations of the model: one that is accepted must run forward and backward, stay finite and come back from its state dict."""

from __future__ import annotations

import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Set

import torch

from _stress import options as drawing
from _stress.batches import Batch
from _stress.look import Look, gap
from _stress.options import Options
from _stress.pinning import Opened, first_not_finite, opened, own_frame, recorded
from _stress.subject import Subject

LENGTH = 8
REFUSALS = (ValueError, AssertionError, TypeError, NotImplementedError, RuntimeError)
UNJUDGED = ("refused", "large", "left")
RETRIES = 3  # of a configuration that was refused or not judged, each with half of its changes
CAP = 4_000_000  # parameters, or four times as many as the model has as it is given
NOT_THE_MODELS = ("out of memory", "not enough memory", "can't allocate memory")
# The sample's values do not fit what this option sets: another sample would do.
OF_THE_DATA = ("is out of bounds", "target size", "kernel size can't be greater", "output size is too small")


class Tried(NamedTuple):
    """`how` is works, refused, large, left (memory, or the sample does not fit it) or what failed: built, forward, backward, finite, gradients, state."""

    how: str
    says: str = ""
    error: Optional[BaseException] = None
    module: str = ""

    @property
    def failed(self) -> bool:
        return self.how not in ("works", *UNJUDGED)

    @property
    def signature(self) -> Any:
        frame = own_frame(self.error) if self.error is not None else None
        return self.how, type(self.error).__name__, (frame.filename, frame.lineno) if frame else self.module


class Trier:
    """Tries configurations; what fails as the model is given is not asked of the others."""

    def __init__(self, subject: Subject, look: Look, *, library: bool) -> None:
        self.subject, self.look, self.library = subject, look, library
        own = subject.own_length
        self.length = own if own is None or not subject.traits.resizes else min(own, LENGTH)
        self.skipped: Set[str] = set()
        for _ in range(4):
            first = self.tried({})
            if not first.failed:
                break
            self.skipped.add(first.how)
        self.known: Dict[str, Tried] = {}

    def _batch(self, model: Any) -> Batch:
        return self.subject.batch(2, self.length, seed=19, model=model)

    def remembered(self, changed: Options) -> Tried:
        key = repr(sorted(changed.items()))
        if key not in self.known:
            self.known[key] = self.tried(changed)
        return self.known[key]

    def tried(self, changed: Options) -> Tried:
        """Build one, run it and load its state into another."""
        seed = self.subject.asked.seed
        try:
            model = self.subject.build(seed, options=changed)
        except REFUSALS as error:
            return Tried("refused", str(error)[:200], error)
        except MemoryError:
            return Tried("left")
        except Exception as error:  # anything else is no refusal
            if self.library:  # its configuration has lists that must fit its counts
                return Tried("refused", _words(error), error)
            return Tried("built", f"is not built ({_words(error)})", error)
        if sum(one.numel() for one in model.parameters()) > max(CAP, 4 * self.subject.traits.parameters):
            return Tried("large")
        doing = "forward"
        with opened(model) as now:
            batch = None
            try:
                batch = self._batch(model)
                ran = self.subject.run(model, batch, seed=7)
                model.train()
                trained = self.subject.run(model, batch, seed=7, grad=True)
                doing = "backward"
                trained.loss.backward()
            except Exception as error:  # whatever the user's model raises is what was looked for
                leaves = list(self._batch(model).leaves().values()) if batch is None else list(batch.leaves().values())
                return self._raised(doing, error, now, fits=not (doing == "forward" and now.takes(leaves)))
        if not bool(torch.isfinite(ran.loss)) and "finite" not in self.skipped:
            module = self._begins(model.eval(), batch)
            return Tried("finite", f"has a loss of {float(ran.loss):.3g}" + (f", which begins in {module}" if module else ""), module=module)
        ill = [name for name, one in model.named_parameters() if one.grad is not None and not one.grad.is_sparse and not bool(torch.isfinite(one.grad).all())]
        if ill and "gradients" not in self.skipped and "finite" not in self.skipped:
            return Tried("gradients", f"gets a gradient that is not finite for {ill[0]}", module=ill[0])
        return self._state(model.eval(), batch, changed) if "state" not in self.skipped else Tried("works")

    def _raised(self, doing: str, error: BaseException, now: Opened, *, fits: bool) -> Tried:
        text, module = str(error).lower(), now.innermost()
        if doing in self.skipped or isinstance(error, (MemoryError, NotImplementedError)) or any(word in text for word in NOT_THE_MODELS):
            return Tried("left", _words(error), error)
        if not fits or any(word in text for word in OF_THE_DATA):
            return Tried("left", _words(error), error)
        return Tried(doing, f"fails {doing}{f' in {module}' if module else ''} ({_words(error)})", error, module)

    def _begins(self, model: Any, batch: Batch) -> str:
        with recorded(model) as calls:
            self.subject.run(model, batch, seed=7)
        name = first_not_finite(calls)
        return type(model).__name__ if name == "" else name or ""

    def _state(self, model: Any, batch: Batch, changed: Options) -> Tried:
        """Load its state dict into one of other weights: the names must be the same, and so the outputs."""
        try:
            before = self.subject.run(model, batch, seed=7)
            other = self.subject.build(self.subject.asked.seed + 1, options=changed)
            other.load_state_dict(model.state_dict())
            after = self.subject.run(other, batch, seed=7)
        except Exception as error:  # missing names, other sizes, or what the model raises
            return Tried("state", f"does not load its own state dict ({_words(error)})", error)
        if self.subject.traits.noisy:
            return Tried("works")
        worst = max([gap(after.outputs[name], before.outputs[name]) for name in before.outputs if name in after.outputs] or [gap(after.loss, before.loss)])
        return Tried("works") if worst <= 1e-5 else Tried("state", f"gives other outputs after its state dict was loaded into another one ({worst:.2g})")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:200]}"


def written(changed: Options) -> str:
    """`heads=3,hidden=8`, by name."""
    return ",".join(f"{name}={value}" for name, value in sorted(changed.items()))


def shrunk(trier: Trier, changed: Options, defaults: Options, signature: Any) -> Options:
    """Return the smallest change that still fails so: options go back to their defaults one by one, then numbers come nearer to them."""

    def fails(candidate: Options) -> bool:
        return trier.look.left_s() > 1.0 and bool(candidate) and trier.remembered(candidate).signature == signature

    found, again = dict(changed), True
    while again:
        again = False
        for name in sorted(found, key=lambda one: (not isinstance(found[one], (bool, float)), one)):
            kept = {key: value for key, value in found.items() if key != name}
            candidate = drawing.changes(drawing.fitted({**defaults, **kept}, defaults), defaults)
            if len(candidate) >= len(found):
                candidate = kept  # it fails at the same line, so that what follows it only to fit is not needed to tell it
            if fails(candidate):
                found, again = candidate, True
                break
    for name in sorted(found):
        for value in drawing.nearer(found[name], defaults[name]):
            candidate = drawing.changes(drawing.fitted({**defaults, **found, name: value}, defaults), defaults)
            if len(candidate) <= len(found) and candidate.get(name) == value and fails(candidate):
                found = candidate
                break
    return found


def _again(subject: Subject) -> str:
    asked = subject.asked
    words = ["model_stress.py", "--model", asked.model, *(["--sample", asked.sample] if asked.sample else []), "--suites", "fuzz"]
    return " ".join(shlex.quote(one) for one in [*words, "--fuzz", str(asked.fuzz), "--seed", str(asked.seed)])


def run(subject: Subject, look: Look) -> None:
    if not subject.asked.fuzz:
        look.skip("no configurations were asked for (--fuzz 0)")
    every = subject.options()
    config = getattr(subject.build(subject.asked.seed), "config", None)
    library = (type(config).__module__ or "").startswith("transformers.") and all(hasattr(config, name) for name in every)
    defaults = drawing.variable(every, library=library)
    trier = Trier(subject, look, library=library)
    defaults = {name: value for name, value in defaults.items() if len(drawing.others(name, value, trier.length or 1)) > 1}
    if not defaults:
        look.skip("neither the factory nor a configuration has numeric or boolean options that may be varied")
    picked = drawing.drawn(defaults, subject.asked.seed, subject.asked.fuzz, trier.length or 1)
    counts: Dict[str, int] = {}
    told: List[Any] = []
    for turn, first in enumerate(picked):
        changed = first
        if look.left_s() < 1.5:
            break
        look.step(f"configuration {turn}: {written(changed) or 'the defaults'}")
        tried = trier.remembered(changed)
        for attempt in range(RETRIES):
            if tried.how in ("refused", "left") and len(changed) > 1:
                changed = drawing.fewer(changed, defaults, f"{subject.asked.seed}:{turn}:{attempt}")
                tried = trier.remembered(changed)
        counts[tried.how] = counts.get(tried.how, 0) + 1
        if tried.failed and tried.signature not in told:
            told.append(tried.signature)
            _tell(trier, look, shrunk(trier, changed, defaults, tried.signature), changed, turn)
    if not library:
        _undivided(trier, look, defaults)
    done = sum(counts.values())
    look.number("config.tried", float(done), "configurations", **counts)
    parts = [
        f"{counts[how]} {says}" for how, says in (("refused", "refused as they were built"), ("large", "too large"), ("left", "not judged")) if how in counts
    ]
    if all(how in UNJUDGED for how in counts):
        why = ", ".join(parts) or "no time was left"
        look.skip(f"none of the {len(picked)} configurations drawn was judged: {why}")
    if not told:
        look.held("config.fails", 0, 0, "configurations", "", what="option")
    also = f" ({', '.join(parts)})" if parts else ""
    cut = "" if done == len(picked) else f" of {len(picked)} for the time"
    look.summary(f"{done}{cut} configurations of {', '.join(sorted(defaults))[:200]} with seed {subject.asked.seed}{also}")


def _undivided(trier: Trier, look: Look, defaults: Options) -> None:
    """Heads that do not divide the width: accepted and failing later is a check that is missing, which costs no training anything."""
    for changed in drawing.undivided(defaults):
        if look.left_s() > 1.5:
            tried = trier.remembered(changed)
            if tried.failed:
                look.note(f"{written({**defaults, **changed})[:200]} does not divide, and is accepted: the model then {tried.says[:300]}")
                return


def _tell(trier: Trier, look: Look, least: Options, drawn: Options, turn: int) -> None:
    tried = trier.remembered(least)
    where = written(least)
    says = f"With {where} the model is accepted and {tried.says}; configuration {turn} of seed {trier.subject.asked.seed} was {written(drawn)}."
    says += f" To repeat it: {_again(trier.subject)}"
    labels: Dict[str, Any] = {"module": tried.module, "how": tried.how, "configuration": turn}
    if tried.error is not None:
        look.raised("config.fails", tried.error, says, what="option", where=where, **labels)
    else:
        look.held("config.fails", 1, 0, "configurations", says, what="option", where=where, **labels)
