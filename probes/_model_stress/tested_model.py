"""The model under test, built anew as often as a suite needs it, and batches for it."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import math
import os
import random
import sys
import textwrap
import warnings
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch

from _model_stress import sample_batches
from _model_stress.batches import Batch, batch_between, batch_of, leaves_of
from _model_stress.findings import gap
from _model_stress.request import StressRequest
from _shared import named_object
from _shared.child_program import summary_of

# of generation: not what training sees
CACHES = ("past_key_values", "mems", "cache_params", "state")
SMALL = 5_000_000  # parameters
LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_seq_length",
    "max_sequence_length",
    "max_length",
    "max_len",
    "block_size",
    "context_length",
    "n_ctx",
)


class RunResult(NamedTuple):
    """One forward pass: the scalar loss and the floating-point outputs by name. `own_loss` is false
    where the mean square of the outputs stands for a loss.
    """

    loss: Any
    outputs: Dict[str, Any]
    own_loss: bool

    def outputs_gap(self, other: RunResult) -> float:
        """The largest gap of the outputs that both have, 0 without any."""
        both = [name for name in self.outputs if name in other.outputs]
        return max((gap(self.outputs[name], other.outputs[name]) for name in both), default=0.0)

    def gap(self, other: RunResult) -> float:
        """The largest gap of outputs and loss."""
        return max(self.outputs_gap(other), gap(self.loss, other.loss))


class Traits(NamedTuple):
    """What the first look at the model told, for all suites.

    `doubles`: it calculates in float64 too. `noisy`: two runs in eval() differ. `couples_rows`: a
    row's outputs depend on the other rows.
    `resizes`: batches of another length go through. `max_length`: the longest that it declares,
    with the name that said so. `loss_couples`: the loss of a batch is not the mean of its rows'
    losses. `parameters` is their number. `fan_ins`: of the parameters whose operations tell it.
    `usual_length`: the shortest that goes through, where a sample that must be asked for a length
    gives too few positions otherwise.
    """

    doubles: bool = True
    noisy: bool = False
    couples_rows: bool = False
    loss_couples: bool = False
    resizes: bool = True
    max_length: Optional[int] = None
    max_length_name: str = ""
    own_loss: bool = True
    parameters: int = 0
    forward_s: float = 0.0
    fan_ins: Mapping[str, float] = MappingProxyType({})
    usual_length: int = 0


class TestedModel:
    """Made once, in the parent; children build from it. `kind`: module, transformers, lightning."""

    def __init__(self, request: StressRequest) -> None:
        self.request, self.device, self.traits = request, request.device, Traits()
        self._make, self._config = _maker(request.model)
        self._sample: Any = (
            named_object.load_named_object(request.sample) if request.sample else None
        )
        self.kind = "module"
        self._like: Optional[Batch] = None

    # ---- the model

    def build(
        self,
        seed: int = 0,
        *,
        lively: bool = False,
        dtype: Any = None,
        options: Optional[Dict[str, Any]] = None,
    ) -> Any:
        """Return a model of its own, in eval(), on the device, its weights drawn by `seed`.

        `lively` stirs all weights, so that what starts at zero or very small shows too: for
        comparing forms of one thing, never for judging magnitudes.
        `dtype` casts it (torch.float64 is best for comparisons where `traits.doubles`). `options`
        are other values of the factory's or the configuration's options. Raises what the user's
        code raises, and NamedObjectError where it gives no module.
        """
        sow(seed)
        model = self._make(options or {})
        if not isinstance(model, torch.nn.Module):
            raise named_object.NamedObjectError(
                f"{self.request.model} gives {type(model).__name__}, which is no torch.nn.Module."
            )
        self.kind = kind_of(model)
        model.to(self.device)
        if lively:
            stir(model, seed, self.traits.fan_ins)
        if dtype is not None:
            cast(model, dtype)
        return model.eval()

    def comparing(self, seed: int = 0) -> Any:
        """Return the model for comparisons: stirred, and in float64 where it can."""
        return self.build(seed, lively=True, dtype=torch.float64 if self.traits.doubles else None)

    @property
    def tolerance(self) -> float:
        """The relative difference allowed between two ways to calculate the same with `comparing()`
        models. In float64 some norms and softmaxes still use float32: 2**-24 times some hundred; in
        float32 ten times that.
        """
        return 1e-5 if self.traits.doubles else 1e-3

    def options(self) -> Dict[str, Any]:
        """The numeric and boolean options of the factory or the model's configuration."""
        return dict(self._config(self))

    def factory_constants(self) -> List[int]:
        """The whole numbers that stand in the factory's body; none where its source is not at
        hand.
        """
        if os.path.isdir(os.path.expanduser(self.request.model)):
            return []
        made = named_object.load_named_object(self.request.model)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
        except (TypeError, OSError, SyntaxError):
            return []
        body = getattr(tree.body[0], "body", []) if inspect.isfunction(made) else []
        return sorted(
            {
                item.value
                for statement in body
                for item in ast.walk(statement)
                if isinstance(item, ast.Constant) and type(item.value) is int and item.value > 1
            }
        )

    # ---- batches

    def batch(
        self, rows: int, length: Optional[int] = None, seed: int = 0, model: Any = None
    ) -> Batch:
        """A batch of these sizes, in `model`'s type and device; `length` None is the sample's own.
        Raises NamedObjectError where no sample was given and none can be made up.
        """
        found = self._sized(rows, length, seed, model)
        dtype = (
            next((item.dtype for item in model.parameters() if item.is_floating_point()), None)
            if model is not None
            else None
        )
        return found.to(device=self.device, dtype=dtype)

    def _sized(self, rows: int, length: Optional[int], seed: int, model: Any) -> Batch:
        sample = self._sample
        if sample is None:
            return sample_batches.made_up(
                model if model is not None else self.build(), rows, length, seed
            )
        if sample_batches.takes_sizes(sample):
            wanted = length or self.usual_length

            def asked_for(wide: int, long: int) -> Any:
                sow(seed)
                return (
                    sample(long, wide) if sample_batches.is_turned(sample) else sample(wide, long)
                )

            return self._between(
                asked_for(rows, wanted),
                rows,
                lambda: asked_for(rows + 1, wanted),
                lambda: asked_for(rows, wanted + 1),
            )
        if sample_batches.takes_rows(sample):

            def of_rows(count: int) -> Any:
                sow(seed)
                return sample(count)

            own = self._between(of_rows(rows), rows, lambda: of_rows(rows + 1), None)
            return (
                own
                if (rows, length or own.length) == (own.rows, own.length)
                else own.resized(rows, length or own.length, seed)
            )
        sow(seed)
        data = sample_batches.drawn(sample)
        if not leaves_of(data):
            raise named_object.NamedObjectError(
                f"{self.request.sample} gives {type(data).__name__} without a tensor in it."
            )
        own = batch_of(data)
        return (
            own
            if (rows, length or own.length) == (own.rows, own.length)
            else own.resized(rows, length or own.length, seed)
        )

    def own_batch(self, model: Any) -> Optional[Batch]:
        """The batch as the sample gives it when nothing is asked of it; None where it has to be
        asked for sizes, or where there is none.
        """
        sample = self._sample
        if sample is None or any(
            item.default is item.empty for item in sample_batches.positional(sample)
        ):
            return None
        sow(0)
        dtype = next((item.dtype for item in model.parameters() if item.is_floating_point()), None)
        return batch_of(sample_batches.drawn(sample)).to(device=self.device, dtype=dtype)

    def _between(
        self,
        data: Any,
        rows: int,
        more_rows: Callable[[], Any],
        longer: Optional[Callable[[], Any]],
    ) -> Batch:
        """The batch that the sample gave for `rows`; what its axes count is asked once."""
        if self._like is None or leaves_of(data).keys() != self._like.axes.keys():
            self._like = batch_between(
                data, rows, more_rows(), longer() if longer is not None else None
            )
        return (
            Batch(data, self._like.axes, self._like.packed)
            if self._like is not None
            else batch_of(data)
        )

    @property
    def own_length(self) -> Optional[int]:
        """The length of the named sample; None where it has no positions."""
        return self.batch(2).length

    @property
    def usual_length(self) -> int:
        """The length that is asked of a sample of rows and length where none is given."""
        return (
            self.traits.usual_length
            or sample_batches.default_length(self._sample)
            or sample_batches.LENGTH
        )

    @property
    def sized(self) -> bool:
        """Whether the user's sample can be asked for rows and length."""
        return self._sample is not None and sample_batches.takes_sizes(self._sample)

    # ---- a pass

    def run(self, model: Any, batch: Batch, *, seed: int = 0, grad: bool = False) -> RunResult:
        """Run `model` forward on a copy of `batch`, into which it may write, with `seed`; raises
        what the model raises.
        """
        sow(seed)
        with torch.set_grad_enabled(grad):
            return self.read(self.call(model, batch.copied().data))

    def call(self, model: Any, data: Any) -> Any:
        """Call the model as a training step would: Lightning's training_step, else forward."""
        if self.kind == "lightning":
            return _training_step(model, data)
        given = list(inspect.signature(model.forward).parameters.values())
        names = [
            item.name
            for item in given
            if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        ]
        if hasattr(data, "items"):
            if any(item.kind is item.VAR_KEYWORD for item in given) or all(
                key in names for key in data
            ):
                return model(**data)
            known = {key: value for key, value in data.items() if key in names}
            return model(**known) if known else model(data)
        if isinstance(data, (list, tuple)):
            every = any(item.kind is item.VAR_POSITIONAL for item in given)
            return model(*(data if every else data[: max(1, len(names))]))
        return model(data)

    def read(self, raw: Any) -> RunResult:
        """Return the loss and the outputs in what a model returned."""
        named = {
            name: item
            for name, item in leaves_of(_plain(raw)).items()
            if item.is_floating_point() and name.split(".")[0] not in CACHES
        }
        loss = named.pop("loss", None)
        if loss is None:
            scalars = [name for name, item in named.items() if item.dim() == 0]
            loss = named.pop(scalars[0]) if scalars else None
        if loss is not None and loss.dim() > 0:
            loss = loss.mean()
        if loss is None and not named:
            raise named_object.NamedObjectError(
                f"The model returns {type(raw).__name__} without a floating-point tensor in it."
            )
        own = loss is not None
        if loss is None:
            loss = torch.stack(
                [
                    item.float().pow(2).mean()
                    if item.dtype != torch.float64
                    else item.pow(2).mean()
                    for item in named.values()
                ]
            ).sum()
        return RunResult(loss, {**named, **({"loss": loss} if own and not named else {})}, own)


def threads_for(parameters: int) -> None:
    """One thread for a small model: that is faster, and a busy host stretches it less."""
    if parameters < SMALL:
        torch.set_num_threads(1)


def sow(seed: int) -> None:
    """Seed all generators that a model or a sample may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def _training_step(model: Any, data: Any) -> Any:
    """Call without a trainer. Raises NamedObjectError where the step needs more than self.log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        takes = len(
            [
                item
                for item in _parameters(model.training_step)
                if item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD
            ]
        )
        try:
            return model.training_step(data, 0) if takes > 1 else model.training_step(data)
        except RuntimeError as error:
            if "not attached to a `Trainer`" not in str(error):
                raise
            raise named_object.NamedObjectError(
                f"{type(model).__name__}.training_step needs its trainer, which the stress test"
                " does not have; name the module inside."
            ) from error


def kind_of(model: Any) -> str:
    """`transformers`, `lightning` or `module`, by what the model can do."""
    if hasattr(model, "training_step") and hasattr(model, "configure_optimizers"):
        return "lightning"
    return (
        "transformers"
        if hasattr(model, "config")
        and hasattr(model, "save_pretrained")
        and hasattr(model, "main_input_name")
        else "module"
    )


def stir(model: Any, seed: int, fan_ins: Mapping[str, float]) -> None:
    """Add a random part to every weight, as large as its fan-in allows; a tenth to biases and
    scales. Without a fan-in the shape stands in, (out, in, ...), for a table the width of its rows.
    """
    draw = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, item in model.named_parameters():
            if item.is_floating_point():
                fan_in = fan_ins.get(name, math.prod(item.shape[1:]))
                if fan_in <= 1 and item.dim() > 1:
                    fan_in = item.shape[-1]
                size = min(0.5 / math.sqrt(max(1, fan_in)), 0.1 if item.dim() < 2 else math.inf)
                item.add_((torch.randn(item.shape, generator=draw) * size).to(item))


def cast(model: Any, dtype: Any) -> None:
    """Cast a model to float32 or float64; Module.to would drop imaginary parts of tensors."""
    kept = [
        (held, name, item.detach().clone())
        for module in model.modules()
        for held in (module._parameters, module._buffers)  # noqa: SLF001 - the slots themselves
        for name, item in held.items()
        if item is not None and item.is_complex()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if kept else "default")
        model.to(dtype)
    for held, name, item in kept:
        held[name].data = item.to(torch.complex128 if dtype is torch.float64 else torch.complex64)


def max_length_of(model: Any) -> Tuple[Optional[int], str]:
    """The longest sequence that a model declares, and where; (None, "") without one."""
    config = getattr(model, "config", None)
    for holder, prefix in (
        (config, "config."),
        (getattr(model, "hparams", None), "hparams."),
        (model, ""),
    ):
        for name in LENGTHS:
            value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 1 < value < 10**6:
                return value, prefix + name
    for path, module in model.named_modules():
        for name in LENGTHS:
            value = vars(module).get(name)
            if (
                path
                and isinstance(value, int)
                and not isinstance(value, bool)
                and 1 < value < 10**6
            ):
                return value, f"{path}.{name}"
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) and "pos" in path.rsplit(".", 1)[-1].lower():
            return module.num_embeddings, f"{path}.num_embeddings"
    return None, ""


def _plain(raw: Any) -> Any:
    """A dataclass or an object with attributes as a dict."""
    if isinstance(raw, (torch.Tensor, list, tuple)) or hasattr(raw, "items"):
        return raw
    return dict(vars(raw)) if hasattr(raw, "__dict__") else raw


Maker = Tuple[Callable[[Dict[str, Any]], Any], Callable[[TestedModel], Dict[str, Any]]]


def _maker(source: str) -> Maker:
    path = os.path.expanduser(source)
    if os.path.isdir(path):
        return _of_folder(path)
    made = named_object.load_named_object(source)
    if isinstance(made, torch.nn.Module):
        return _of_instance(made)
    if not callable(made):
        raise named_object.NamedObjectError(
            f"{source} is {type(made).__name__}, which is no model and builds none."
        )
    parameters = _parameters(made)
    needed = [
        item.name
        for item in parameters
        if item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
    ]
    if needed:
        raise named_object.NamedObjectError(
            f"{source} cannot be called without arguments: it needs {', '.join(needed)}. Name a"
            " factory that takes none."
        )
    own = {
        item.name: item.default
        for item in parameters
        if isinstance(item.default, (bool, int, float))
    }

    def make(options: Dict[str, Any]) -> Any:
        mine = {name: value for name, value in options.items() if name in own}
        model = made(**mine)
        rest = {name: value for name, value in options.items() if name not in own}
        return _with_config(model, rest) if rest else model

    return make, lambda tested: own or _config_of(tested.build())


def _parameters(made: Any) -> List[inspect.Parameter]:
    try:
        return list(inspect.signature(made).parameters.values())
    except (TypeError, ValueError):
        return []  # some callables of extensions have no signature


def _config_of(model: Any) -> Dict[str, Any]:
    config: Any = getattr(model, "config", None)
    rows = dict(getattr(model, "hparams", None) or {})
    if hasattr(config, "to_dict"):
        rows = config.to_dict()
    elif dataclasses.is_dataclass(config):
        rows = {item.name: getattr(config, item.name) for item in dataclasses.fields(config)}
    return {
        name: value
        for name, value in rows.items()
        if isinstance(value, (bool, int, float)) and not name.startswith("_")
    }


def _with_config(model: Any, options: Dict[str, Any]) -> Any:
    if not hasattr(model, "config"):
        return type(model)(**{**dict(model.hparams), **options})
    return type(model)(_changed(model.config, options))


def _changed(config: Any, options: Dict[str, Any]) -> Any:
    """The configuration with other values, without what its class derived from the old ones."""
    if dataclasses.is_dataclass(config) and not hasattr(config, "to_dict"):
        return dataclasses.replace(config, **options)  # type: ignore[type-var]
    try:
        rows = config.to_diff_dict()
        old = {name: getattr(config, name) for name in options}
        lengths = {
            value for name, value in old.items() if "layer" in name and not isinstance(value, bool)
        }
        widths = [
            value
            for name, value in old.items()
            if name in ("hidden_size", "d_model", "n_embd", "embed_dim", "dim")
        ]
        for name, value in list(rows.items()):
            stale = (
                isinstance(value, (list, tuple))
                and len(value) in lengths
                and all(isinstance(item, str) for item in value)
            )
            divided = name == "head_dim" and value * getattr(
                config, "num_attention_heads", 0
            ) == getattr(config, "hidden_size", None)
            keys = name == "num_kv_heads" and value == old.get("num_attention_heads")
            if name not in options and (
                stale or divided or keys or (name.endswith("_hidden_size") and value in widths)
            ):
                del rows[name]
        kept = {
            name: value
            for name, value in rows.items()
            if name not in ("transformers_version", "model_type", "architectures", "dtype")
        }
        return type(config)(**{**kept, **options})
    except Exception:  # a class of its own kind: its values are set on a copy
        changed = copy.deepcopy(config)
        for name, value in options.items():
            setattr(changed, name, value)
        return changed


def _of_instance(made: Any) -> Maker:
    """The module built it as it was imported: each build is a copy, and all seeds give the same."""

    def make(options: Dict[str, Any]) -> Any:
        if options:
            return _with_config(made, options)
        try:
            return copy.deepcopy(made)
        except Exception as error:  # whatever it holds that cannot be copied
            raise named_object.NamedObjectError(
                f"The module cannot be copied ({summary_of(error)}); name a factory that builds it."
            ) from error

    return make, lambda _: _config_of(made)


def _of_folder(path: str) -> Maker:
    """The class in config.json with the folder's weights, if any; its code is never run."""
    if not os.path.isfile(os.path.join(path, "config.json")):
        raise named_object.NamedObjectError(
            f"There is no config.json in {path}: the stress test needs a model that it can build."
        )
    try:
        transformers = importlib.import_module("transformers")
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    except Exception as error:
        # it is not installed, or config.json is none of its own, or asks for code of the folder
        raise named_object.NamedObjectError(
            f"{path} cannot be read by transformers: {summary_of(error)}"
        ) from error
    kind = getattr(transformers, str((config.architectures or [""])[0]), None)
    weights = any(name.endswith((".safetensors", ".bin")) for name in os.listdir(path))

    def make(options: Dict[str, Any]) -> Any:
        if weights and not options:
            return (
                (kind or transformers.AutoModel)
                .from_pretrained(path, local_files_only=True)
                .float()
            )
        changed = _changed(config, options)
        return kind(changed) if kind is not None else transformers.AutoModel.from_config(changed)

    return make, lambda tested: _config_of(tested.build())
