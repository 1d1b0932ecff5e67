"""What is masked must not be seen, what is padded must change nothing, and a model that looks back must not look ahead."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import torch

from _stress.attending import Attended, attended, meant_to_look_back, square_givers
from _stress.batches import Batch
from _stress.isolating import View, apart, blamed, given_other, inputs_of, mended, own_code, recorded
from _stress.look import Look, gap
from _stress.masking import LABELS, PROMISING, ROWS, Bench, Port, find_port, takes_of
from _stress.subject import Ran, Subject

SHORT = 4  # positions: how much is padded at most
LOCAL = (torch.nn.modules.conv._ConvNd, torch.nn.modules.pooling._AvgPoolNd, torch.nn.modules.pooling._MaxPoolNd)  # noqa: SLF001 - no other name for them
OFTEN = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)
LEAST = 1e-9


class Masks:
    """The checks, on one model and one batch."""

    def __init__(self, subject: Subject, look: Look) -> None:
        self.subject, self.look = subject, look
        self.use(Bench(subject))
        self.rows = 1 if subject.traits.couples_rows else ROWS
        self.seen = Attended({}, built=False)
        self.tried: List[str] = []
        self.broken = self.local = False

    def use(self, bench: Bench) -> None:
        self.bench, self.model, self.length, self.near = bench, bench.model, bench.length, bench.near

    @contextlib.contextmanager
    def part(self, name: str, says: str) -> Iterator[None]:
        """One check. What the model refuses with an error is a note: a mask that raises misleads nobody."""
        if self.look.left_s() < 1:
            self.look.note(f"{name} was not tried: no time was left.")
            return
        self.look.step(name)
        try:
            yield
            self.tried.append(says)
        except Exception as error:
            self.look.note(f"{name}: the model raises {type(error).__name__}: {str(error)[:200]}")

    # ---- comparing

    def off(self, new: Ran, old: Ran, view: View) -> float:
        return max([apart(one, old.outputs[name], view) for name, one in new.outputs.items() if name in old.outputs and name != "loss"] or [0.0])

    def knowing(self) -> Set[str]:
        """The modules that the mask, or something made of it, is given to."""
        every = list(range(self.length))
        full = self.bench.masked(self.bench.batch, self.bench.keep([every] * ROWS))
        part = self.bench.masked(self.bench.batch, self.bench.keep([[0, *every[3 : -SHORT + 1]]] * ROWS))
        return given_other(self.model, lambda: self.bench.run(full), lambda: self.bench.run(part))

    def blame(self, new: Batch, old: Batch, view: View, knowing: Optional[Set[str]] = None) -> Tuple[List[str], List[str]]:
        """The names of those whose own code makes the difference, and the modules as they were found."""
        before = recorded(self.model, lambda: self.bench.run(old))
        guilty = list(mended(self.model, lambda: self.bench.run(new), before, view, self.near))
        return blamed(self.model, guilty, self.knowing() if knowing is None else knowing, before.modules), guilty

    def found(self, name: str, value: float, says: str, names: List[str], **labels: Any) -> None:
        more = f", and in {len(names) - 1} more" if len(names) > 1 else ""
        where = names[0] if names else type(self.model).__name__
        labels = {**labels, **({"also": names[1:9]} if more else {})}
        says = f"{says} (in {where}{more})."
        self.broken = not self.look.held(name, value, self.near, "of the largest value", says, what="module", where=where, **labels)

    def held(self, name: str, value: float, **labels: Any) -> None:
        self.look.held(name, value, self.near, "of the largest value", "", **labels)

    # ---- the checks of a mask

    def ignored(self, port: Port) -> None:
        """Other values under the mask must not change what stands at kept positions: at the end, and in the middle where a model attends."""
        bench, every = self.bench, list(range(self.length))
        promised = port.given or port.name in PROMISING or self.subject.kind == "transformers"
        if not port.acts and not promised:
            self.look.note(f"{port.name} is taken and changes nothing in the outputs.")
            return
        pooled = self.subject.kind != "transformers"
        for form, out in (("at the end", every[-SHORT:]), ("in the middle", [2, 3])):
            view = View(self.rows, self.length, [one for one in every if one not in out], pooled=pooled)
            base = bench.batch.take(list(range(self.rows)))
            keep = bench.keep([view.kept] * self.rows)
            old = bench.masked(base, keep)
            new = bench.filled(old, dict.fromkeys(range(self.rows), out), group=bench.group(port.name), pad=False)
            worst = self.off(bench.run(new), bench.run(old), view)
            names, guilty = self.blame(new, old, view) if worst > self.near or self.loss_only() else ([], [])
            if guilty and not self.counts(port, form, guilty):
                continue
            if not guilty and worst <= self.near:
                self.held("mask.ignored", worst, form=form)
                continue
            says = f"Other values under the mask, {form}, change outputs at positions that count by {worst:.2g} of the largest: {port.name} is not heeded"
            self.found("mask.ignored", max(worst, 2 * self.near), says, names)
            return

    def counts(self, port: Port, form: str, guilty: List[str]) -> bool:
        """Is what was found the mask's business? A convolution mixes neighbours, and a model that only goes by lengths has none in the middle."""
        modules = dict(self.model.named_modules())
        local = [one for one in guilty if isinstance(modules[one], LOCAL)]
        if local and all(any(near == one or near.startswith(one + ".") for near in local) for one in guilty):
            self.local = True
            self.look.note(f"Values under the mask reach their neighbours through {local[0]} ({type(modules[local[0]]).__name__}), as without a mask.")
            return False
        if form == "at the end":
            if not port.acts and port.name not in PROMISING:
                return port.given
            return True
        attends = [one for one in guilty if any(name == one or name.startswith(one + ".") for name in self.seen.modules)]
        return bool(attends) or any(name == "" and "" in guilty for name in self.seen.modules)

    def loss_only(self) -> bool:
        return self.subject.kind == "lightning"

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
            base = bench.batch.take(rows)
            keep = [list(range(counts[row])) for row in rows]
            padded = bench.filled(base, {place: list(range(counts[row], self.length)) for place, row in enumerate(rows)}, group=group, pad=True)
            new = bench.masked(padded, bench.keep(keep))
            ran = bench.run(new)
            for place, row in enumerate(rows):
                view = View(len(rows), self.length, keep[place], row=place, pooled=pooled)
                old = bench.alone(row, counts[row])
                worst = self.off(ran, bench.run(old), view)
                form = "in a batch of other lengths" if together else "with padding behind it"
                if worst <= self.near:
                    self.held("mask.padding", worst, form=form)
                    continue
                names, guilty = self.blame(new, old, view)
                if guilty and not self.counts(port, "at the end", guilty):
                    return
                says = f"A row of {counts[row]} positions gives other outputs {form} than alone, by {worst:.2g} of the largest"
                self.found("mask.padding", worst, says, names)
                return

    def left(self, port: Port) -> None:
        """Padding in front, where the positions can be told."""
        bench, count = self.bench, self.length - SHORT
        takes = takes_of(self.subject, self.model)
        if "position_ids" not in takes or bench.two_sided or not self.subject.traits.resizes or not isinstance(bench.batch.data, dict):
            return
        group = bench.group(port.name)
        order = [*range(count, self.length), *range(count)]
        kept = list(range(SHORT, self.length))
        moved = bench.filled(bench.batch.take([1]), {0: list(range(count, self.length))}, group=group, pad=True).at(order)
        places = torch.tensor([[0] * SHORT + list(range(count))], device=self.subject.device)
        new = bench.masked(moved, bench.keep([kept])).replaced({"position_ids": places})
        old = bench.alone(1, count).replaced({"position_ids": places[:, SHORT:]})
        view = View(1, self.length, kept, row=0, pooled=False)
        worst = self.off(bench.run(new), bench.run(old), view)
        if worst <= self.near:
            self.held("mask.padding", worst, form="with padding before it")
            return
        names, guilty = self.blame(new, old, view)
        if not guilty or self.counts(port, "in the middle", guilty):
            says = f"A row of {count} positions with padding before it and its positions told gives other outputs than alone, by {worst:.2g} of the largest"
            self.found("mask.padding", worst, says, names)

    def forms(self, port: Port) -> None:
        """Forms of one mask that the model accepts give one result."""
        bench, every = self.bench, list(range(self.length))
        rows = list(range(self.rows))
        base, keep = bench.batch.take(rows), bench.keep([every[:-SHORT]] * self.rows)
        view = View(self.rows, self.length, every[:-SHORT], pooled=False)
        reference = bench.run(port.put(base, keep))
        if any(one.dim() > 2 for name, one in bench.leaves.items() if name in port.names):
            return
        for form, other in self.other_forms(port, keep):
            try:
                ran = bench.run(base.replaced(dict.fromkeys(port.names, other)))
            except Exception as error:
                self.look.note(f"{port.name} as {form} is refused: {type(error).__name__}: {str(error)[:120]}")
                continue
            worst = self.off(ran, reference, view)
            if any(one.shape != reference.outputs[name].shape for name, one in ran.outputs.items() if name in reference.outputs):
                continue  # broadcast into something else: not a form that it takes
            if worst > self.near and form == "float" and self.adds(port, base, keep, reference, view):
                self.look.note(f"{port.name} as float is added to the scores, as torch does, and does not count as 0 and 1.")
                continue
            self.tried.append(form)
            if worst <= self.near:
                self.held("mask.form", worst, form=form)
                continue
            names, _ = self.blame(base.replaced(dict.fromkeys(port.names, other)), port.put(base, keep), view)
            says = f"{port.name} as {form} gives other outputs than as {str(port.dtype)[6:]}, by {worst:.2g} of the largest, without an error"
            self.found("mask.form", worst, says, names, form=form)

    def other_forms(self, port: Port, keep: Any) -> List[Tuple[str, Any]]:
        own = next((one.dtype for one in self.model.parameters() if one.is_floating_point()), torch.float32)
        forms: Dict[str, Any] = {}
        if port.additive or port.name.endswith("key_padding_mask"):  # torch's convention: what is true is left out, floats are added
            plain = port._replace(keeps=0, additive=False)
            forms["bool"] = plain.tensor(keep, torch.bool)
            forms["additive float"] = plain._replace(additive=True).tensor(keep, own)
            return list(forms.items())
        for dtype, form in ((torch.long, "int64"), (torch.int32, "int32"), (torch.bool, "bool"), (own, "float")):
            if dtype != port.dtype:
                forms[form] = port.tensor(keep, dtype)
        if port.dims == 2:
            wide = keep[:, None, None, :]
            transformers = self.subject.kind == "transformers"
            if transformers:
                if self.seen.seen is None and not self.bench.two_sided:
                    return list(forms.items())  # its layers see different things: one 4-D mask would say the same to all
                sees = self.seen.seen if self.seen.seen is not None else torch.ones(self.length, self.length).bool()
                wide = wide & sees.to(keep.device)
                forms["4-D additive"] = torch.zeros(wide.shape, dtype=own, device=keep.device).masked_fill(~wide, torch.finfo(own).min)
            if not transformers or getattr(self.model.config, "_attn_implementation", "") == "sdpa":
                forms["4-D bool"] = wide if port.keeps else ~wide
        return list(forms.items())

    def adds(self, port: Port, base: Batch, keep: Any, reference: Ran, view: View) -> bool:
        own = next((one.dtype for one in self.model.parameters() if one.is_floating_point()), torch.float32)
        other = port._replace(additive=True, keeps=0).tensor(keep, own)
        try:
            return self.off(self.bench.run(base.replaced(dict.fromkeys(port.names, other))), reference, view) <= self.near
        except Exception:
            return False

    def all_masked(self) -> None:
        """A row in which nothing counts must leave the other rows and all gradients alone."""
        bench, every = self.bench, list(range(self.length))
        if self.rows == 1:
            return
        full = bench.full()
        new = bench.masked(bench.batch, bench.keep([every, [], every]))
        view = View(ROWS, self.length, every, only=[0, 2])
        worst = self.off(bench.run(new), bench.run(full), view)
        if worst > self.near:
            names, _ = self.blame(new, full, view)
            self.found("mask.all_masked", worst, "A row whose mask leaves nothing changes the outputs of the other rows", names)
            return
        self.held("mask.all_masked", worst, form="other rows")
        ran = bench.run(new, grad=True)
        parts = [one[[0, 2]].double().pow(2).mean() for one in ran.outputs.values() if one.dim() > 1 and one.shape[0] == ROWS and one.requires_grad]
        if not parts:
            return
        torch.stack(parts).sum().backward()
        wrong = [name for name, one in self.model.named_parameters() if one.grad is not None and not bool(torch.isfinite(one.grad).all())]
        self.model.zero_grad(set_to_none=True)
        if not wrong:
            self.held("mask.all_masked", 0.0, form="gradients")
            return
        maker = self.nan_maker(new)
        if maker is None:
            self.look.note(
                "A row whose mask leaves nothing makes nan in the gradients, in torch's own attention: such rows must not come in a batch.", warn=True
            )
            return
        says = f"A row whose mask leaves nothing makes the gradients of {len(wrong)} parameters ({wrong[0]} first) nan, though it has no part in the loss"
        self.found("mask.all_masked", 1.0, says, [maker])

    def nan_maker(self, batch: Batch) -> Optional[str]:
        """The first module whose outputs are nan; None where it is torch's attention, which gives nan to a row without keys by design."""
        modules = dict(self.model.named_modules())
        calls = recorded(self.model, lambda: self.bench.run(batch))
        first = next((name for (name, _), outputs in calls.gave.items() if any(bool(one.isnan().any()) for one in outputs.values())), None)
        if first is None:
            return type(self.model).__name__
        at = first
        while at and not isinstance(modules[at], OFTEN) and not own_code(modules[at]):
            at = at.rpartition(".")[0]
        return None if isinstance(modules[at], OFTEN) and not own_code(modules[at]) else at or type(self.model).__name__

    def loss(self, port: Port) -> None:
        """The loss of a padded row whose padded labels are -100 is that of the row alone."""
        bench, group, count = self.bench, self.bench.group(port.name), self.length - SHORT
        labels = [leaf for leaf in group if leaf.rsplit(".", 1)[-1] in LABELS and not bench.leaves[leaf].is_floating_point()]
        if not labels or bench.two_sided or not self.subject.traits.own_loss or not self.subject.traits.resizes or self.broken or self.local:
            return
        padded = bench.filled(bench.batch.take([1]), {0: list(range(count, self.length))}, group=group, pad=True)
        one = bench.run(bench.masked(padded, bench.keep([list(range(count))]))).loss
        other = bench.run(bench.alone(1, count)).loss
        worst = gap(one, other)
        says = f"The loss of a row with {SHORT} padded positions, whose labels are -100, differs from that of the row alone by {worst:.2g}"
        self.look.held("mask.loss", worst, self.near, "of the loss", f"{says}: they are counted.", what="loss", where=labels[0])

    # ---- looking ahead

    def future(self) -> None:
        """A later token must not change an earlier output, where the model means to look back only."""
        bench = self.bench
        group = bench.group("decoder_attention_mask" if bench.two_sided else "")
        cut = self.length // 2 + 1
        old = bench.full()
        rows = range(ROWS)
        later = bench.filled(old, {row: list(range(cut, self.length)) for row in rows}, group=group - self.label_leaves(), pad=False)
        sooner = bench.filled(old, {row: list(range(cut)) for row in rows}, group=group - self.label_leaves(), pad=False)
        ahead, behind = (View(ROWS, self.length, places, pooled=False) for places in (list(range(cut)), list(range(cut, self.length))))
        before = recorded(self.model, lambda: bench.run(old))
        leaking = mended(self.model, lambda: bench.run(later), before, ahead, self.near)
        worst = self.off(bench.run(later), bench.run(old), ahead)
        if not leaking and worst <= self.near:
            self.held("mask.future", worst)
            return
        mixing = mended(self.model, lambda: bench.run(sooner), before, behind, LEAST if self.subject.traits.doubles else self.near)
        why = meant_to_look_back(self.model, self.seen, set(mixing) | set(leaking), set(leaking), self.length)
        if not why:
            self.tried.append("it looks ahead, and nothing says that it must not")
            return
        knowing = square_givers(inputs_of(self.model, lambda: bench.run(old)), self.length)
        names = blamed(self.model, list(leaking), knowing, before.modules)
        size = max(worst, *leaking.values()) if leaking else worst
        self.found("mask.future", size, f"Later tokens change earlier outputs, by {size:.2g} of the largest, although {why}", names)

    def label_leaves(self) -> Set[str]:
        return set() if self.bench.two_sided else {leaf for leaf in self.bench.leaves if leaf.rsplit(".", 1)[-1] in LABELS}


def run(subject: Subject, look: Look) -> None:
    """Find the mask, and hold what the model does with it against what it must do."""
    if subject.traits.noisy:
        look.skip("two runs in eval() differ, so that nothing can be compared")
    if subject.own_length is None:
        look.skip("no axis of the batch counts positions")
    look.step("the mask")
    masks = Masks(subject, look)
    bench = masks.bench
    if bench.length <= SHORT + 1:
        look.skip(f"{bench.length} positions are too few")
    bench.port = port = find_port(bench)
    with masks.part("attention", "attention"):
        masks.seen = attended(masks.model, lambda: bench.run(bench.full()), bench.length)
    if port is not None:
        polarity = "additive" if port.additive else f"{port.keeps} counts"
        look.note(f"The mask is {port.name} ({polarity}, {port.dims}-D).")
        with masks.part("mask.ignored", "other values under the mask"):
            masks.ignored(port)
        if not masks.broken:
            with masks.part("mask.padding", "padded against unpadded"):
                masks.padding(port)
            with masks.part("mask.loss", "padded labels"):
                masks.loss(port)
        if not masks.broken:
            with masks.part("mask.form", "forms of the mask"):
                masks.forms(port)
    with masks.part("mask.future", "later tokens"):
        masks.future()
    if port is not None and not masks.broken:
        masks.use(Bench(subject, single=True))  # in float64 some models overflow the least number of float32 where a row sees nothing
        masks.bench.port = port
        with masks.part("mask.padding, left", "padding before"):
            masks.left(port)
        with masks.part("mask.all_masked", "a row of zeros"):
            masks.all_masked()
    told = f"{port.name}: " if port is not None else "no mask is taken: "
    look.summary(told + ", ".join(dict.fromkeys(masks.tried[1:])))
