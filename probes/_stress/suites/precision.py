"""Narrow types: autocast and the whole model in bfloat16 and float16, against float32, and float32 against float64.

Thresholds are multiples of the type's unit (torch.finfo(type).eps) and of what the wide calculation itself makes of a change in its inputs' last digit.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

from _stress import halves
from _stress.look import Look
from _stress.passes import MODES, Mode, Pass, is_missing, name_of, passed, unreached
from _stress.subject import Subject, cast

BATCH_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm)
ROWS = 8  # whose statistics stand for those of training
LENGTH = 128  # positions where the model takes them: sums over few positions lose too little to be seen


class Precision:
    def __init__(self, subject: Subject, look: Look) -> None:
        self.subject, self.look = subject, look
        self.told: Set[Tuple[str, str]] = set()
        self.missing: Dict[str, List[str]] = {}
        self.tried: List[str] = []
        self.modules = 0
        self.length: Optional[int] = None
        self.statistics: Dict[bool, Dict[str, Any]] = {}  # of the norms, with and without stirred weights
        self.root = ""  # what the model's own code is called, where no module of it is to blame: its class

    # ---- making

    def make(self, *, lively: bool, dtype: Any = None) -> Any:
        model = self.subject.build(self.subject.asked.seed, lively=lively)
        self.root = type(model).__name__
        config: Any = getattr(model, "config", None)
        if hasattr(config, "use_cache"):
            config.use_cache = False
        self.settle(model, lively=lively)
        if dtype is not None or any(one.dtype in (torch.float16, torch.bfloat16) for one in model.parameters()):
            if dtype in (torch.float16, torch.bfloat16):
                model.to(dtype)  # as a script would do it
            else:
                cast(model, torch.float32)
        return model

    def settle(self, model: Any, *, lively: bool) -> None:
        """Give norms that were never trained the statistics of a batch.

        With those that they start with they norm nothing in eval(), and a deep residual network
        grows by a power of two with each block, as it never does once it is trained.
        """
        norms = {
            name: one
            for name, one in model.named_modules()
            if isinstance(one, BATCH_NORMS) and one.running_mean is not None and not bool(one.num_batches_tracked)
        }
        if norms and lively not in self.statistics:
            momenta = {name: one.momentum for name, one in norms.items()}
            for one in norms.values():
                one.momentum = None  # the first batch's own
            try:
                self.subject.run(model.train(), self.subject.batch(ROWS, self.length, seed=3, model=model))
            except Exception:  # training is other suites' business
                for one in norms.values():
                    one.reset_running_stats()
            model.eval()
            for name, one in norms.items():
                one.momentum = momenta[name]
            self.statistics[lively] = {name: (one.running_mean.clone(), one.running_var.clone()) for name, one in norms.items()}
        for name, one in norms.items():
            mean, variance = self.statistics[lively][name]
            one.running_mean.copy_(mean)
            one.running_var.copy_(variance)

    def batch(self, model: Any) -> Any:
        return self.subject.batch(2, self.length, seed=1, model=model)

    def passed(self, model: Any, mode: Optional[Mode]) -> Pass:
        return passed(self.subject, model, self.batch(model), mode)

    # ---- telling

    def tell(self, name: str, where: str, value: float, threshold: float, unit: str, says: str, *, what: str = "module", **labels: Any) -> None:
        where = where or self.root
        if (name, where) not in self.told and (value > threshold or not math.isfinite(value)):
            self.told.add((name, where))
            self.look.held(name, value, threshold, unit, says, what=what, where=where, **labels)

    def title(self, model: Any, name: str) -> str:
        """What a module is called where a sentence needs a name: the model itself by its class."""
        return name or type(model).__name__

    # ---- asking

    def run(self) -> None:
        look, subject = self.look, self.subject
        self.length = self._length()
        references = self._references()
        plain = references[False]
        look.step("casts in float32")
        self._casts()
        for mode in MODES:
            for lively in (False, True):
                if look.left_s() < 1 or mode.says in self.missing:
                    continue
                look.step(f"{mode.says}{', stirred weights' if lively else ''}")
                self._whole(mode, references[lively], lively=lively)
        if subject.traits.noisy:
            look.note("eval() is noisy: modules are not compared one by one.")
        else:
            for dtype in (torch.float16, torch.bfloat16, torch.float32):
                look.step(f"modules one by one, {name_of(dtype)}")
                self._one_by_one(dtype)
        for says, modes in self.missing.items():
            look.note(f"{says} is not tried here: {modes[0]}")
        if not self.told and not self.tried and not self.modules:
            look.skip("no narrower type runs here")
        if not self.told:
            look.held("precision.overflow", 0, 0, "modules", "", what="module")
        tried = ", ".join(self.tried) or "nothing"
        look.summary(f"{tried} against float32 at 2x{self.length or '-'}, {self.modules} modules by themselves, loss {plain.loss:.4g}")

    def _length(self) -> Optional[int]:
        traits = self.subject.traits
        own = self.subject.own_length
        if own is None or not traits.resizes or traits.forward_s > 0.5:
            return own
        return max(own, min(LENGTH, traits.max_length or LENGTH)) if traits.forward_s < 0.1 else own

    def _references(self) -> Dict[bool, Pass]:
        self.look.step("float32")
        found = {lively: self.passed(self.make(lively=lively), None) for lively in (False, True)}
        if found[False].error is not None and self.length is not None:
            self.length = self.subject.own_length  # it does not go through at this length, which other suites tell
            found = {lively: self.passed(self.make(lively=lively), None) for lively in (False, True)}
        plain = found[False]
        if plain.error is not None:
            raise plain.error
        if not math.isfinite(plain.loss) or plain.gradient:
            self.look.skip("the loss or its gradients are not finite in float32 already")
        return found

    def _casts(self) -> None:
        model = self.make(lively=False)
        batches = [self.subject.batch(2, self.length, seed=seed, model=model) for seed in (1, 2)]
        found = halves.casts_of(model, [lambda batch=batch: self.subject.run(model, batch, grad=True) for batch in batches])  # type: ignore[misc]
        for name, one in sorted(found.items(), key=lambda pair: not pair[1].fed)[:3]:
            unit = torch.finfo(one.kind).eps
            says = f"{self.title(model, name)} casts to {name_of(one.kind)} by itself, though all is float32: it keeps {-math.log10(unit):.0f} digits of 7."
            if one.fed:
                self.tell("precision.tolerance", name, unit, torch.finfo(torch.float32).eps, "of a value", says, type=name_of(one.kind))
            else:  # a bias of distances, as some models were trained with it
                self.look.note(f"{says} What it casts hangs on no weight and on no value of the batch: a table of constants.", warn=True)

    def _whole(self, mode: Mode, reference: Pass, *, lively: bool) -> None:
        if reference.error is not None or not math.isfinite(reference.loss) or reference.gradient:
            return
        model = self.make(lively=lively, dtype=None if mode.auto else mode.dtype)
        one = self.passed(model, mode)
        labels = {"mode": mode.says}
        if one.error is not None and is_missing(one.error):
            self.missing.setdefault(mode.says, []).append(f"{type(one.error).__name__}: {str(one.error)[:160]}")
            return
        if mode.says not in self.tried:
            self.tried.append(mode.says)
        bad = one.watch.first_bad(reference.watch)
        if bad is not None:
            what = "nan" if bad.nan else "inf"
            says = f"{self.title(model, bad.module)} makes {what} in {mode.says} out of finite inputs, where float32 has none."
            self.tell("precision.overflow", bad.module, math.inf, 0, "", says, **labels)
            return
        if one.error is not None:
            self._raised(model, mode, one, one.error)
            return
        if not math.isfinite(one.loss):
            self.tell(
                "precision.overflow",
                "loss",
                math.inf,
                0,
                "",
                f"The loss is {one.loss} in {mode.says}, and {reference.loss:.4g} in float32.",
                what="loss",
                **labels,
            )
        elif one.gradient:
            says = f"The gradient of {one.gradient} is not finite in {mode.says}, where the loss is, and in float32 all are finite."
            self.tell("precision.gradient", one.gradient, math.inf, 0, "", says, what="parameter", **labels)
        elif not self.subject.traits.noisy:
            apart = abs(one.loss - reference.loss) / max(abs(reference.loss), 1e-6)
            self.look.number("precision.loss", apart, "of the float32 loss", mode=mode.says, weights="stirred" if lively else "as built")

    def _raised(self, model: Any, mode: Mode, one: Pass, error: BaseException) -> None:
        modules = dict(model.named_modules())
        if mode.auto and "without overflow" in str(error) and self.passed(self.make(lively=False, dtype=mode.dtype), mode._replace(auto=False)).error is None:
            says = f"{type(error).__name__}: {str(error)[:160]} in {mode.says}, where all in {name_of(mode.dtype)} goes through: a number of one type meets another."
            self.look.note(says, warn=True)
            self.missing.setdefault(mode.says, []).append("see above")
            return
        left = "" if mode.auto or "serialization" not in self.subject.asked.suites else unreached(self.subject, self.make, self.length, mode, error)
        if left:
            says = f"{type(error).__name__}: {str(error)[:160]} in {mode.says}: a cast of the model does not reach {left}, which is registered nowhere."
            self.look.note(f"{says} No state dict has it either, which the suite of saving tells.", warn=True)
            self.missing.setdefault(mode.says, []).append(f"{left} keeps its own type")
            return
        own = [name for name in one.watch.open if halves.is_own(modules[name])]
        where = own[-1] if own else ""
        if (not one.backward and "dtype" in str(error)) or "same type" in str(error) or "scalar type" in str(error):
            where = where if mode.auto else (one.watch.widener(mode.dtype) or where)
        if ("precision.raises", where) in self.told:
            return
        self.told.add(("precision.raises", where))
        doing = "backward" if one.backward else "forward"
        says = f"{self.title(model, where)} does not run {doing} in {mode.says}: {type(error).__name__}: {str(error)[:200]}"
        self.look.raised("precision.raises", error, says, what="module", where=where or self.root, mode=mode.says)

    def _one_by_one(self, dtype: Any) -> None:
        wide_type = torch.float64 if dtype is torch.float32 else None
        if (wide_type is not None and not self.subject.traits.doubles) or name_of(dtype) in self.missing or self.look.left_s() < 1:
            return
        narrow, wide = self.make(lively=True, dtype=dtype), self.make(lively=True)
        with torch.no_grad():  # the wide one has the very weights of the narrow one
            for one, other in zip((*wide.parameters(), *wide.buffers()), (*narrow.parameters(), *narrow.buffers())):
                if one.is_floating_point():
                    one.copy_(other)
        if wide_type is not None:
            cast(wide, wide_type)
        model = self.make(lively=True)
        with halves.taking(model) as taken, contextlib.suppress(Exception):
            self.subject.run(model, self.batch(model), grad=True)
        narrows, wides = dict(narrow.named_modules()), dict(wide.named_modules())
        found: List[Tuple[str, halves.Own]] = []
        for one in taken:
            if self.look.left_s() < 1:
                self.look.note(f"The time is over: {len(taken) - taken.index(one)} modules were not tried in {name_of(dtype)}.")
                break
            own = halves.alone(narrows[one.module], wides[one.module], one, dtype)
            if own is None:
                continue
            self.modules += 1
            inside = one.module + "." if one.module else ""
            if any(name.startswith(inside) for name, _ in found):
                continue  # a part of it is told
            if own.overflow and own.grows:
                says = (
                    f"{self.title(model, one.module)} makes inf or nan in {name_of(dtype)} at {own.overflow:.3g} times the inputs that came, where its result"
                )
                self.look.note(f"{says} in float32 has grown more than they have: nothing is held against it.")
            if (own.overflow and not own.grows) or own.error > own.allowed:
                found.append((one.module, own))
        known = {where for _, where in self.told}
        for name, own in [one for one in found if (one[0] or self.root) not in known][:3]:
            self._tell_own(self.title(model, name), name, own, dtype, wides[name])

    def _tell_own(self, title: str, name: str, own: halves.Own, dtype: Any, module: Any) -> None:
        kind = name_of(dtype)
        if own.overflow and not own.grows:
            by = "a norm must bear" if own.norm else "it was given here"
            made = "loses its output" if own.norm else "makes inf or nan"
            says = f"{title} {made} in {kind} at {own.overflow:.3g} times the inputs that {by}, where float32 is well within float16's range."
            self.tell("precision.overflow", name, math.inf, 0, "", says, mode=kind, times=own.overflow)
            return
        says = f"{title} by itself is {own.error:.2g} off in {kind}, given the same inputs and weights; its arithmetic should cost {own.allowed:.2g} at most."
        halved = _complex(module) if dtype is not torch.float32 else ""
        if halved:
            says = f"{title} is {own.error:.2g} off in {kind}: a cast of the model drops the imaginary part of its {halved}; hold it as two real tensors."
        self.tell("precision.tolerance", name, own.error, own.allowed, "of the root mean square", says, mode=kind)


def _complex(module: Any) -> str:
    """The name of a tensor whose imaginary part Module.to drops; empty where there is none such."""
    return next((str(name) for name, one in (*module.named_buffers(), *module.named_parameters()) if one.is_complex()), "")


def run(subject: Subject, look: Look) -> None:
    """Raises what the model raises in float32."""
    Precision(subject, look).run()
