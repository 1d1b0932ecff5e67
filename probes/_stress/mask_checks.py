"""What the checks of masks share, and those that compare values: ignored, padded, padded labels."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, List, NamedTuple, Set

import torch

from _stress.attending import BLOCKED, Attended
from _stress.batches import Batch
from _stress.isolating import View, apart, blamed, given_other, mended, recorded
from _stress.look import Look, gap
from _stress.masking import PROMISING, ROWS, Bench, Port, takes_of
from _stress.subject import Ran, Subject

SURE = 1e-3  # of the largest value: far beyond what float32 rounds
SHORT = 4  # positions: how much is padded at most
LOCAL = ("Conv", "AvgPool", "MaxPool")  # torch's modules that mix neighbours and know of no mask


class Fault(NamedTuple):
    """How far two runs are apart, the names of the modules whose own code does it, and those modules as they were found; none where nothing differs."""

    size: float
    names: List[str]
    guilty: List[str]


class Masks:
    """A model, its batch, what has been tried. `broken` once a fault was told, so that its echoes are not.

    `local`: convolutions carry values out from under the mask. `heedless`: the outputs know of no mask, and nobody promised that they do.
    """

    def __init__(self, subject: Subject, look: Look) -> None:
        self.subject, self.look = subject, look
        self.use(Bench(subject))
        self.rows = 1 if subject.traits.couples_rows else ROWS
        self.seen = Attended({}, built=False)
        self.tried: List[str] = []
        self.answers = 0
        self.broken = self.local = self.heedless = False

    def use(self, bench: Bench) -> None:
        self.bench, self.model, self.length, self.near = bench, bench.model, bench.length, bench.near

    @contextlib.contextmanager
    def part(self, name: str, says: str) -> Iterator[None]:
        """One check. What the model refuses with an error is a note: a mask that raises misleads nobody."""
        if self.look.left_s() < 1:
            self.look.note(f"{name} was not tried: no time was left.")
            return
        self.look.step(name)
        before = self.answers
        try:
            yield
            if self.answers > before:  # a check that did not apply was not made
                self.tried.append(says)
        except Exception as error:  # whatever the user's code raises
            self.look.note(f"{name}: the model raises {type(error).__name__}: {str(error)[:200]}")

    def off(self, new: Ran, old: Ran, view: View) -> float:
        return max([apart(one, old.outputs[name], view) for name, one in new.outputs.items() if name in old.outputs and name != "loss"] or [0.0])

    @functools.cached_property
    def loss_only(self) -> bool:
        """Does the model give nothing but a loss? Its modules are compared then."""
        return set(self.bench.run(self.bench.full()).outputs) <= {"loss"}

    def differs(self, new: Batch, old: Batch, view: View) -> Fault:
        """Compare two batches' outputs where they count."""
        worst = self.off(self.bench.run(new), self.bench.run(old), view)
        if not self.loss_only and (worst <= self.near or self.only_in_doubles(new, old, view, worst)):
            return Fault(min(worst, self.near), [], [])
        return self.blame(new, old, view, worst)

    def only_in_doubles(self, new: Batch, old: Batch, view: View, worst: float) -> bool:
        """Is the difference gone in float32? Then it is a matter of types, which other suites tell."""
        if not self.subject.traits.doubles or self.bench is self.single or worst < SURE:
            return False
        ran = [self.single.run(one.to(dtype=torch.float32)) for one in (new, old)]
        gone = self.off(ran[0], ran[1], view) < worst / 100
        if gone:
            self.look.note("In float64 the model does not heed its mask as it does in float32: masks are told of float32 only.")
        return gone

    @functools.cached_property
    def single(self) -> Bench:
        """In float32: in float64 some models overflow the least number of float32 where a row sees nothing."""
        found = Bench(self.subject, single=True)
        found.port = self.bench.port
        return found

    @functools.cached_property
    def mixers(self) -> Set[str]:
        """The modules that carry something from one row to another: another suite's business, and so is what follows from it."""
        view = View(ROWS, self.length, list(range(self.length)), row=1)
        before = recorded(self.model, lambda: self.bench.run(self.bench.alone(1, self.length)))
        found = mended(self.model, lambda: self.bench.run(self.bench.full()), before, view, self.near)
        if found:
            self.rows = 1
            self.look.note(f"Rows depend on each other (in {next(iter(found)) or type(self.model).__name__}): masks were tried on single rows.")
        return set(found)

    def blame(self, new: Batch, old: Batch, view: View, worst: float) -> Fault:
        before = recorded(self.model, lambda: self.bench.run(old))
        guilty = mended(self.model, lambda: self.bench.run(new), before, view, self.near)
        names = blamed(self.model, list(guilty), self.knowing(), before.modules)
        return Fault(max([worst, *guilty.values()]), names, list(guilty))

    def knowing(self) -> Set[str]:
        """The modules that the mask, or something right that was made of it, is given to."""
        every, out = list(range(self.length)), [1, 2, *range(self.length - SHORT + 1, self.length)]
        full = self.bench.masked(self.bench.batch, self.bench.keep([every] * ROWS))
        part = self.bench.masked(self.bench.batch, self.bench.keep([[one for one in every if one not in out]] * ROWS))

        def right(mask: Any) -> bool:
            if not mask.is_floating_point() or mask.dim() < 3 or mask.shape[-1] != self.length or mask.shape[1] != 1:
                return True
            kept, left_out = mask[..., [one for one in every if one not in out]], mask[..., out]
            faint = bool((kept == 0).all()) and not bool((left_out <= BLOCKED).all())
            return not faint and not bool((kept <= BLOCKED).all())

        return given_other(self.model, lambda: self.bench.run(full), lambda: self.bench.run(part), right)

    def found(self, name: str, size: float, says: str, names: List[str], **labels: Any) -> None:
        """A fault, named by the first module of `names`; the model itself where there are none."""
        more = f", and in {len(names) - 1} more" if len(names) > 1 else ""
        where = names[0] if names else type(self.model).__name__
        labels = {**labels, **({"also": names[1:9]} if more else {})}
        says = f"{says} (in {where}{more})."
        self.answers += 1
        if not self.look.held(name, size, self.near, "of the largest value", says, what="module", where=where, **labels):
            self.broken = True

    def held(self, name: str, size: float, **labels: Any) -> None:
        self.answers += 1
        self.look.held(name, size, self.near, "of the largest value", "", **labels)

    def attends(self, module: str) -> bool:
        """Is attention calculated in this module's own code, or below it?"""
        return any(one == module or not module or one.startswith(module + ".") for one in self.seen.modules)

    def counts(self, form: str, guilty: List[str]) -> bool:
        """Is what was found the mask's business? A convolution mixes neighbours, and a model that only goes by lengths has none in the middle."""
        if guilty and self.mixers.issuperset(guilty):
            return False
        modules = dict(self.model.named_modules())
        local = [one for one in guilty if type(modules[one]).__name__.startswith(LOCAL) and type(modules[one]).__module__.startswith("torch.")]
        if local and all(any(near == one or not one or near.startswith(one + ".") for near in local) for one in guilty):
            if not self.local:
                kind = type(modules[local[0]]).__name__
                self.look.note(f"Values under the mask reach their neighbours through {local[0]} ({kind}), as without a mask.")
            self.local = True
            return False
        return form == "at the end" or any(self.attends(one) for one in guilty)

    # ---- the checks

    def ignored(self, port: Port) -> None:
        """Other values under the mask must not change what stands at kept positions: at the end, and in the middle where a model attends."""
        bench, every = self.bench, list(range(self.length))
        pooled = self.subject.kind != "transformers"
        if pooled and not port.acts and port.name not in PROMISING and (not port.given or self.weighs_loss()):
            self.look.note(f"{port.told} changes nothing in the outputs{', only the loss' if port.given else ''}.")
            self.heedless = True
            return
        for form, out in (("at the end", every[-SHORT:]), ("in the middle", [2, 3])):
            view = View(self.rows, self.length, [one for one in every if one not in out], pooled=pooled)
            old = bench.masked(bench.batch.take(list(range(self.rows))), bench.keep([view.kept] * self.rows))
            new = bench.filled(old, dict.fromkeys(range(self.rows), out), group=bench.group(port.name), pad=False)
            fault = self.differs(new, old, view)
            if fault.size <= self.near:
                self.held("mask.ignored", fault.size, form=form)
            elif self.counts(form, fault.guilty):
                says = f"Other values under the mask, {form}, change outputs at positions that count by {fault.size:.2g} of the largest"
                self.found("mask.ignored", fault.size, f"{says}: {port.told} is not heeded", fault.names, form=form)
                return

    def weighs_loss(self) -> bool:
        """Does the mask change the loss?"""
        part = self.bench.masked(self.bench.batch, self.bench.keep([list(range(2, self.length - 2))] * ROWS))
        return self.subject.traits.own_loss and gap(self.bench.run(part).loss, self.bench.run(self.bench.full()).loss) > 0

    def padding(self, port: Port) -> None:
        """A row with padding behind it gives what it gives alone, by itself and in a batch of rows of different lengths."""
        bench, group = self.bench, self.bench.group(port.name)
        if not self.subject.traits.resizes:
            self.look.note("Batches of another length do not go through: padded was not compared with unpadded.")
            return
        counts = [self.length, self.length - SHORT, self.length - SHORT + 2]
        pooled = self.subject.kind != "transformers" or bench.pad is not None
        for together in (False, True)[: 1 if self.rows == 1 else 2]:
            rows = list(range(ROWS)) if together else [1]
            keep = [list(range(counts[row])) for row in rows]
            places = {place: list(range(counts[row], self.length)) for place, row in enumerate(rows)}
            new = bench.masked(bench.filled(bench.batch.take(rows), places, group=group, pad=True), bench.keep(keep))
            form = "in a batch of other lengths" if together else "with padding behind it"
            for place, row in enumerate(rows):
                fault = self.differs(new, bench.alone(row, counts[row]), View(len(rows), self.length, keep[place], row=place, pooled=pooled))
                if fault.size <= self.near:
                    self.held("mask.padding", fault.size, form=form)
                    continue
                if self.counts("at the end", fault.guilty):
                    says = f"A row of {counts[row]} positions gives other outputs {form} than alone, by {fault.size:.2g} of the largest"
                    self.found("mask.padding", fault.size, says, fault.names, form=form)
                return

    def left(self, port: Port) -> None:
        """Padding in front, where the positions can be told."""
        bench, count = self.bench, self.length - SHORT
        takes = takes_of(self.subject, self.model)
        if "position_ids" not in takes or bench.two_sided or not self.subject.traits.resizes or not isinstance(bench.batch.data, dict):
            return
        form, kept = "with padding before it", list(range(SHORT, self.length))
        padded = bench.filled(bench.batch.take([1]), {0: list(range(count, self.length))}, group=bench.group(port.name), pad=True)
        places = torch.tensor([[0] * SHORT + list(range(count))], device=self.subject.device)
        moved = padded.at([*range(count, self.length), *range(count)])
        new = bench.masked(moved, bench.keep([kept])).replaced({"position_ids": places})
        old = bench.alone(1, count).replaced({"position_ids": places[:, SHORT:]})
        fault = self.differs(new, old, View(1, self.length, kept, row=0, pooled=False))
        if fault.size <= self.near:
            self.held("mask.padding", fault.size, form=form)
        elif self.counts("in the middle", fault.guilty):
            says = f"A row of {count} positions, {form} and its positions told, gives other outputs than alone, by {fault.size:.2g} of the largest"
            self.found("mask.padding", fault.size, says, fault.names, form=form)

    def loss(self, port: Port) -> None:
        """The loss of a padded row whose padded labels are -100 is that of the row alone."""
        bench, group, count = self.bench, self.bench.group(port.name), self.length - SHORT
        labels = [leaf for leaf in group if bench.is_label(leaf) and not bench.leaves[leaf].is_floating_point()]
        if not labels or bench.two_sided or self.local or not self.subject.traits.own_loss or not self.subject.traits.resizes:
            return
        padded = bench.filled(bench.batch.take([1]), {0: list(range(count, self.length))}, group=group, pad=True)
        one = bench.run(bench.masked(padded, bench.keep([list(range(count))]))).loss
        worst = gap(one, bench.run(bench.alone(1, count)).loss)
        says = f"The loss of a row with {SHORT} padded positions, whose labels are -100, differs from that of the row alone by {worst:.2g}"
        self.answers += 1
        if not self.look.held("mask.loss", worst, self.near, "of the loss", f"{says}: they are counted.", what="loss", where=labels[0]):
            self.broken = True


def own_dtype(model: Any) -> Any:
    """The floating-point type of the model's weights."""
    return next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32)


def label_leaves(bench: Bench) -> Set[str]:
    """Leaves that only the loss reads."""
    return set() if bench.two_sided else {leaf for leaf in bench.leaves if bench.is_label(leaf)}
