"""Which argument or leaf is the mask, what it says, and batches that are masked, padded, filled."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.sizes import LONG
from _model_stress.tested_model import RunResult, TestedModel

# torch: True is left out
IGNORING = (
    "src_key_padding_mask",
    "key_padding_mask",
    "tgt_key_padding_mask",
    "memory_key_padding_mask",
)
NAMES = (
    "attention_mask",
    "attn_mask",
    *IGNORING[:2],
    "padding_mask",
    "pad_mask",
    "input_mask",
    "token_mask",
    "valid_mask",
    "mask",
    "masks",
    "src_mask",
    "decoder_attention_mask",
    "tgt_key_padding_mask",
)
# Names of a sample's leaves that may be masks too, and of such as are about something else:
# predicted places, kinds of tokens.
LIKE = re.compile(r"mask|(^|_)(keep|kept|valid|visible|padded|padding|pad|present)($|_)")
UNLIKE = re.compile(r"lm|loss|label|pos|type|special|segment|(^|_)ids?$")
PROMISING = ("attention_mask", *IGNORING)  # the name alone says what it is for
LABELS = ("labels", "label", "targets", "target", "lm_labels", "tags")
TARGETS = ("decoder_", "tgt", "target", "labels", "label")
ROWS, LENGTHS = 3, (11, 13, 9, 7, 17, 10, 8, 6, 5)
IGNORED = -100  # torch's cross_entropy leaves it out


class MaskInput(NamedTuple):
    """How the model is told what to leave out: under `names` (more than one where a decoder is told
    too), a tensor of `dtype`.

    `keeps` is what stands at positions that count (1 or 0). `additive`: 0 counts, a very negative
    number does not. `dims`: 2 is (rows, positions), 4 is (rows, 1, 1, positions). `given`: the
    sample has it, and where it has more than two axes it is kept but for the columns that are left
    out.
    `acts`: the model's outputs differ with it at all.
    """

    names: Tuple[str, ...]
    keeps: int
    dtype: Any
    additive: bool = False
    dims: int = 2
    given: bool = False
    acts: bool = True

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def label(self) -> str:
        """The name in a sentence."""
        return f"leaf {self.name} of the batch" if _last(self.name).isdecimal() else self.name

    def tensor(self, keep: Any, dtype: Any = None) -> Any:
        """The mask for `keep` (rows x positions, True counts)."""
        if self.additive:
            kind = dtype or self.dtype
            found = torch.zeros(keep.shape, dtype=kind, device=keep.device).masked_fill(
                ~keep, torch.finfo(kind).min
            )
        else:
            found = (keep if self.keeps else ~keep).to(dtype or self.dtype)
        return found[:, None, None, :] if self.dims == 4 else found

    def put(self, batch: Batch, keep: Any) -> Batch:
        """The batch with this mask."""
        new = {}
        for name in self.names:
            own = batch.leaves().get(name)
            if own is not None and own.dim() > 2 and own.shape[-1] == keep.shape[1]:
                wide = keep.reshape(keep.shape[0], *([1] * (own.dim() - 2)), keep.shape[1])
                left_out = torch.finfo(own.dtype).min if self.additive else 1 - self.keeps
                new[name] = own.masked_fill(~wide, left_out)
            else:
                new[name] = self.tensor(keep)
        return batch.replaced(new)


class MaskBench:
    """A model and a batch, ROWS x `length`, sizes that no dimension of the model equals."""

    def __init__(self, tested: TestedModel, *, single: bool = False) -> None:
        self.tested = tested
        self.model = (
            tested.build(tested.request.seed, lively=True)
            if single
            else tested.comparing(tested.request.seed)
        )
        self.near = 1e-3 if single else tested.tolerance
        self.pad = pad_of(self.model)
        self.length = self._length()
        self.batch = named(
            tested,
            self.model,
            tested.batch(ROWS, self.length, seed=tested.request.seed + 5, model=self.model),
        )
        self.leaves = self.batch.leaves()
        self.masks = [
            name
            for name in self.leaves
            if _last(name) in NAMES
            or _last(name).endswith("mask")
            or self.leaves[name].dtype == torch.bool
        ]
        self.two_sided = any(
            _last(name).startswith(("decoder_", "tgt")) for name in self.leaves
        ) or bool(getattr(getattr(self.model, "config", None), "is_encoder_decoder", False))
        self.port: Optional[MaskInput] = None
        self.unnamed_labels = self._unnamed_labels()

    def _length(self) -> int:
        own, most = self.tested.own_length or 0, self.tested.traits.max_length or 10**6
        if not self.tested.traits.resizes:
            return own
        sizes = {size for item in self.model.parameters() for size in item.shape}
        fine = [item for item in LENGTHS if item <= most and self._runs(item, own)]
        return next(
            (item for item in fine if not sizes & {item, item + 1, ROWS * item}),
            fine[0] if fine else own,
        )

    def _runs(self, length: int, own: int) -> bool:
        """Whether a batch of that length goes through; not asked where the sample is short too."""
        if own <= LONG:
            return True
        try:
            self.tested.run(self.model, self.tested.batch(ROWS, length, model=self.model))
        except Exception:  # the shapes tell of lengths that fail
            return False
        return True

    def _unnamed_labels(self) -> str:
        """The last of several leaves that are known by their places only: (inputs, …, labels)."""
        places = [name for name in self.leaves if _last(name).isdecimal()]
        last = places[-1] if len(places) == len(self.leaves) > 1 else ""
        return (
            last
            if last
            and self.leaves[last].dtype == torch.long
            and len(self.batch.axes[last].positions) == 1
            else ""
        )

    def group(self, name: str) -> Set[str]:
        """The leaves whose positions the mask `name` describes."""
        placed = {
            leaf
            for leaf, axes in self.batch.axes.items()
            if axes.positions and axes.rows is not None
        }
        if not self.two_sided:
            return placed
        target = {leaf for leaf in placed if _last(leaf).startswith(TARGETS)}
        return target if _last(name).startswith(TARGETS) else placed - target

    def square(self) -> Set[str]:
        """Leaves that are positions x positions for all rows, as a causal mask is."""
        return {
            leaf
            for leaf, axes in self.batch.axes.items()
            if axes.rows is None and len(axes.positions) == 2
        }

    def masked(self, batch: Batch, keep: Any) -> Batch:
        return self.port.put(batch, keep) if self.port is not None else batch

    def keep(self, rows: List[List[int]], length: Optional[int] = None) -> Any:
        """A mask in which each row counts at these positions."""
        found = torch.zeros(
            len(rows), length or self.length, dtype=torch.bool, device=self.tested.device
        )
        for row, places in enumerate(rows):
            found[row, places] = True
        return found

    def full(self, batch: Optional[Batch] = None) -> Batch:
        batch = batch or self.batch
        return self.masked(batch, self.keep([list(range(self.length))] * batch.rows))

    def alone(self, row: int, count: int) -> Batch:
        """The first `count` positions of one row, all of which count."""
        group = self.group(self.port.name if self.port is not None else "") | self.square()
        cut = Batch(self.batch.take([row]).data, self.batch.axes)
        short = cut.cut(count).leaves()
        return self.masked(
            cut.changed(lambda name, tensor: short[name] if name in group else tensor),
            self.keep([list(range(count))], count),
        )

    def filled(
        self,
        batch: Batch,
        places: Dict[int, List[int]],
        *,
        group: Set[str],
        pad: bool,
        seed: int = 0,
    ) -> Batch:
        """The batch with padding or other sample values at these places; labels become -100."""
        draw = torch.Generator().manual_seed(seed + 77)

        def changed(name: str, tensor: Any) -> Any:
            axes = batch.axes[name]
            if (
                name not in group
                or name in self.masks
                or "position" in name
                or "type" in name
                or len(axes.positions) != 1
                or axes.rows is None
            ):
                return tensor
            moved = tensor.movedim((axes.rows, axes.positions[0]), (0, 1)).clone()
            for row, where in places.items():
                if where:
                    moved[row, where] = self._values(name, moved[row, where], pad, draw)
            return moved.movedim((0, 1), (axes.rows, axes.positions[0])).contiguous()

        return batch.changed(changed)

    def _values(self, name: str, old: Any, pad: bool, draw: torch.Generator) -> Any:
        if not old.is_floating_point():
            if self.is_label(name) and not self.two_sided:
                return torch.full_like(old, IGNORED)
            if pad and self.pad is not None:
                return torch.full_like(old, self.pad)
            pool = [
                item
                for item in self.leaves[name].unique().tolist()
                if item not in (self.pad, IGNORED)
            ]
            fresh = [
                (
                    [item for item in pool if item != was][
                        int(torch.randint(1 << 30, (1,), generator=draw)) % max(1, len(pool) - 1)
                    ]
                    if len(pool) > 1
                    else was
                )
                for was in old.flatten().tolist()
            ]
            return torch.tensor(fresh, dtype=old.dtype, device=old.device).reshape(old.shape)
        if pad:
            return torch.zeros_like(old)
        return (
            torch.randn(old.shape, generator=draw) * float(self.leaves[name].double().std())
        ).to(old) - old

    def is_label(self, name: str) -> bool:
        return _last(name) in LABELS or name == self.unnamed_labels

    def run(self, batch: Batch, *, grad: bool = False) -> RunResult:
        return self.tested.run(self.model, batch, grad=grad)


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def pad_of(model: Any) -> Optional[int]:
    """The number of the padding token: the configuration's, or that of an embedding."""
    config = getattr(model, "config", None)
    found = getattr(config, "pad_token_id", None)
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    return next(
        (
            item.padding_idx
            for name, item in model.named_modules()
            if isinstance(item, torch.nn.Embedding)
            and item.padding_idx is not None
            and "pos" not in name
        ),
        None,
    )


def takes_of(tested: TestedModel, model: Any) -> List[str]:
    """The names of forward's arguments; none for a Lightning module, which takes a batch."""
    if tested.kind == "lightning":
        return []
    given = inspect.signature(model.forward).parameters.values()
    return [
        item.name for item in given if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
    ]


def takes_any(model: Any) -> bool:
    """Whether forward takes keywords that it does not name."""
    return any(
        item.kind is item.VAR_KEYWORD
        for item in inspect.signature(model.forward).parameters.values()
    )


def named(tested: TestedModel, model: Any, batch: Batch) -> Batch:
    """The batch with forward's argument names, if it can be named, so that a mask can be added."""
    takes, data = takes_of(tested, model), batch.data
    if hasattr(data, "items") or not takes:
        return batch
    parts = [data] if isinstance(data, torch.Tensor) else list(data)[: len(takes)]
    if not isinstance(data, torch.Tensor) and not all(
        isinstance(item, torch.Tensor) for item in parts
    ):
        return batch
    old = [""] if isinstance(data, torch.Tensor) else [str(place) for place in range(len(parts))]
    return Batch(dict(zip(takes, parts)), {name: batch.axes[was] for name, was in zip(takes, old)})


def find_port(bench: MaskBench) -> Optional[MaskInput]:
    """How this model takes a mask; None where it takes none (or refuses every form of it)."""
    own = {
        _last(leaf): leaf
        for leaf, axes in bench.batch.axes.items()
        if axes.rows is not None and bench.leaves[leaf].shape[-1] == bench.length
    }
    takes = takes_of(bench.tested, bench.model)
    for name in NAMES:
        if (
            own.get(name) == name
            and takes
            and name not in takes
            and any(item in takes for item in bench.leaves)
            and not takes_any(bench.model)
        ):
            continue  # the sample has it, the model does not take it
        if name in own and bench.leaves[own[name]].dim() >= 2:
            shown = _shown(own[name], bench.leaves[own[name]])
            shown = shown._replace(acts=_acts(bench, shown))
            # what goes into **kwargs and changes nothing is not taken
            if shown.acts or not takes or own[name] in takes:
                return shown
    if not isinstance(bench.batch.data, dict):
        return _unnamed(bench, own)
    for name in NAMES:
        if name in takes and name not in bench.leaves:
            port = _tried(bench, name, takes)
            if port is not None:
                return port
    return _with_mask_name(bench, own)


def _with_mask_name(bench: MaskBench, own: Dict[str, str]) -> Optional[MaskInput]:
    """A leaf of zeros and ones with a name that may be a mask's, where the outputs depend on it."""
    for name, leaf in own.items():
        item = bench.leaves[leaf]
        plain = item.dim() == 2 and (
            item.dtype == torch.bool or bool(((item == 0) | (item == 1)).all())
        )
        if (
            name not in NAMES
            and plain
            and LIKE.search(name.lower())
            and not UNLIKE.search(name.lower())
        ):
            port = _shown(leaf, item)
            if _acts(bench, port):
                bench.masks.append(leaf)
                return port
    return None


def _unnamed(bench: MaskBench, own: Dict[str, str]) -> Optional[MaskInput]:
    """A leaf that has no name and is of zeros and ones: a mask where the outputs depend on it."""
    for leaf in own.values():
        item = bench.leaves[leaf]
        if (
            _last(leaf).isdecimal()
            and item.dim() == 2
            and leaf != bench.unnamed_labels
            and bool(((item == 0) | (item == 1)).all())
        ):
            port = _shown(leaf, item)
            if _acts(bench, port):
                bench.masks.append(leaf)
                return port
    return None


def _shown(leaf: str, own: Any) -> MaskInput:
    """What a sample's mask says: a constant row has no padding, else the first position counts."""
    if own.is_floating_point() and float(own.min()) < 0:
        return MaskInput((leaf,), 0, own.dtype, additive=True, given=True)
    if _last(leaf) in IGNORING:
        return MaskInput((leaf,), 0, own.dtype, additive=own.is_floating_point(), given=True)
    if own.dim() > 2:
        return MaskInput(
            (leaf,), int(bool(own.reshape(-1, own.shape[-1])[-1, 0])), own.dtype, given=True
        )
    constant = [row for row in own if bool((row == row[0]).all())]
    value = constant[0][0] if constant else own[0, 0]
    if own.is_floating_point() and constant and float(value) == 0:
        return MaskInput((leaf,), 0, own.dtype, additive=True, given=True)
    return MaskInput((leaf,), int(bool(value)), own.dtype, given=True)


def _tried(bench: MaskBench, name: str, takes: List[str]) -> Optional[MaskInput]:
    names = (
        (name, "memory_key_padding_mask")
        if name == "src_key_padding_mask" and "memory_key_padding_mask" in takes
        else (name,)
    )
    keeps = 0 if name in IGNORING or "pad" in name else 1
    keep = bench.keep([list(range(bench.length))] * (ROWS - 1) + [list(range(bench.length - 2))])
    for dims in (2, 4):
        for dtype in (torch.bool,) if name in IGNORING else (torch.long, torch.bool):
            port = MaskInput(names, keeps, dtype, dims=dims)
            with contextlib.suppress(Exception):
                bench.run(port.put(bench.batch, keep))
                return _measured(bench, port)
    return None


def _measured(bench: MaskBench, port: MaskInput) -> MaskInput:
    """Which value counts: the mask that equals no mask. Names with a convention keep it."""
    port = port._replace(acts=_acts(bench, port))
    if port.name in PROMISING or bench.tested.kind == "transformers":
        return port
    none = bench.run(bench.batch)
    full = bench.keep([list(range(bench.length))] * ROWS)
    near, off = bench.near, {0: math.inf, 1: math.inf}
    for keeps in off:
        with contextlib.suppress(Exception):  # a mask that leaves nothing may be refused
            ran = bench.run(port._replace(keeps=keeps).put(bench.batch, full))
            off[keeps] = ran.outputs_gap(none)
    if off[1 - port.keeps] <= near < off[port.keeps]:
        return port._replace(keeps=1 - port.keeps)
    return port


def _acts(bench: MaskBench, port: MaskInput) -> bool:
    """Do the outputs, as a whole, depend on the mask?"""
    full = bench.keep([list(range(bench.length))] * ROWS)
    part = bench.keep([[0, *range(3, bench.length - 2)]] * ROWS)
    try:
        ran, reference = (bench.run(port.put(bench.batch, keep)) for keep in (part, full))
        return ran.outputs_gap(reference) > 0
    except Exception:  # a form that it refuses acts, too
        return True
