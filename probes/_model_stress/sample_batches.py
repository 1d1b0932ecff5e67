"""Makes a batch from a transformers configuration or a module's first layer, without a sample."""

from __future__ import annotations

import inspect
import re
from typing import Any, Dict, List, Optional

import torch
import torch.utils.data

from _model_stress.batches import Axes, Batch, leaves_of
from _shared import named_object

LENGTH = 16
ASK = "give a batch as --sample pkg.module:factory"
WHOLE = (
    "ForCausalLM",
    "LMHeadModel",
    "ForMaskedLM",
    "ForConditionalGeneration",
    "DoubleHeadsModel",
    "ForPreTraining",
)


ROWS_WORD = re.compile(r"batch|rows?$|^bs$|^b$|^n$|samples|^size", re.IGNORECASE)
LENGTH_WORD = re.compile(r"len|seq|token|position|time|steps|^t$|^l$|size|frames", re.IGNORECASE)


def positional(sample: Any) -> List[inspect.Parameter]:
    """The positional arguments of a sample's factory; none of a batch."""
    if not callable(sample) or isinstance(sample, (torch.Tensor, torch.nn.Module)):
        return []
    try:
        return [
            item
            for item in inspect.signature(sample).parameters.values()
            if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return []


def takes_rows(sample: Any) -> bool:
    """Whether the sample's factory takes the number of rows alone: its one argument without a
    default, or a first argument that is named so.
    """
    parameters = positional(sample)
    needed = [item for item in parameters if item.default is item.empty]
    if len(needed) == 1:
        return needed[0] is parameters[0] and not takes_sizes(sample)
    return (
        not needed
        and bool(parameters)
        and bool(ROWS_WORD.search(parameters[0].name))
        and not takes_sizes(sample)
    )


def takes_sizes(sample: Any) -> bool:
    """Whether the sample's factory takes two positional arguments that may be rows and length. With
    defaults their names must say so, or `seed` and `device` would be taken for sizes.
    """
    parameters = positional(sample)
    if len(parameters) < 2 or any(item.default is item.empty for item in parameters[2:]):
        return False
    first, second = parameters[:2]
    sized = bool(ROWS_WORD.search(first.name)) and bool(LENGTH_WORD.search(second.name))
    return sized or is_turned(sample) or first.default is second.default is inspect.Parameter.empty


def default_length(sample: Any) -> Optional[int]:
    """The length that a factory of rows and length gives by itself; None where it has to be asked
    for one.
    """
    parameters = positional(sample)
    default = parameters[0 if is_turned(sample) else 1].default
    return default if isinstance(default, int) and default > 0 else None


def is_turned(sample: Any) -> bool:
    """Whether the factory's arguments are the length first and the rows second, by name."""
    first, second = (name for name, _ in zip(inspect.signature(sample).parameters, range(2)))
    return (
        bool(LENGTH_WORD.search(first))
        and not ROWS_WORD.search(first)
        and bool(ROWS_WORD.search(second))
        and not LENGTH_WORD.search(second)
    )


def drawn(sample: Any) -> Any:
    """The batch that a sample is or gives: of a factory, a loader or a data set."""
    data = (
        sample()
        if callable(sample) and not isinstance(sample, (torch.Tensor, torch.nn.Module))
        else sample
    )
    if isinstance(data, torch.utils.data.DataLoader) or (
        hasattr(data, "__next__") and not leaves_of(data)
    ):
        return next(iter(data))
    if isinstance(data, torch.utils.data.Dataset) and not isinstance(
        data, torch.utils.data.IterableDataset
    ):
        return torch.utils.data.default_collate([data[place] for place in range(4)])
    return data


def made_up(model: Any, rows: int, length: Optional[int], seed: int) -> Batch:
    """A batch for `model`; raises NamedObjectError where the inputs cannot be guessed."""
    if hasattr(model, "config") and hasattr(model, "main_input_name"):
        return _for_transformers(model, rows, length, seed)
    return _for_first_layer(model, rows, length, seed)


def _for_transformers(model: Any, rows: int, length: Optional[int], seed: int) -> Batch:
    config, draw, kind = model.config, torch.Generator().manual_seed(seed), type(model).__name__
    if model.main_input_name == "pixel_values":
        asked = getattr(config, "image_size", 64)
        size = asked if isinstance(asked, int) else asked[0]
        data: Dict[str, Any] = {
            "pixel_values": torch.randn(rows, int(config.num_channels), size, size, generator=draw)
        }
        if kind.endswith("ForImageClassification"):
            data["labels"] = torch.randint(int(config.num_labels), (rows,), generator=draw)
        return Batch(data, {name: Axes(0, ()) for name in data})
    if model.main_input_name != "input_ids":
        raise named_object.NamedObjectError(
            f"{kind} takes {model.main_input_name}, which cannot be made up; {ASK}."
        )
    wide = length or LENGTH
    special = [
        value
        for name in ("pad", "bos", "eos", "mask", "sep", "cls", "decoder_start")
        for value in [getattr(config, f"{name}_token_id", None)]
        if isinstance(value, int)
    ]
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    most = int(text.vocab_size)
    fine = torch.tensor([item for item in range(min(most, 4096)) if item not in special])

    def ids() -> Any:
        return fine[torch.randint(len(fine), (rows, wide), generator=draw)]

    data = {"input_ids": ids(), "attention_mask": torch.ones(rows, wide, dtype=torch.long)}
    takes = inspect.signature(model.forward).parameters
    if kind.endswith(WHOLE) and "labels" in takes:
        data["labels"] = ids() if config.is_encoder_decoder else data["input_ids"].clone()
    elif kind.endswith("ForTokenClassification"):
        data["labels"] = torch.randint(int(config.num_labels), (rows, wide), generator=draw)
    elif kind.endswith("ForSequenceClassification"):
        data["labels"] = torch.randint(int(config.num_labels), (rows,), generator=draw)
    elif kind.endswith("ForQuestionAnswering"):
        data["start_positions"], data["end_positions"] = (
            torch.randint(max(1, wide - 1), (rows,), generator=draw) for _ in range(2)
        )
    elif config.is_encoder_decoder:
        data["decoder_input_ids"] = ids()
    return Batch(
        data, {name: Axes(0, (1,) if item.dim() == 2 else ()) for name, item in data.items()}
    )


def _for_first_layer(model: Any, rows: int, length: Optional[int], seed: int) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    nn = torch.nn
    for path, item in model.named_modules():
        if isinstance(item, nn.Embedding) and "pos" not in path.lower():
            return Batch(
                torch.randint(item.num_embeddings, (rows, length or LENGTH), generator=draw),
                {"": Axes(0, (1,))},
            )
        if isinstance(item, (nn.RNNBase, nn.TransformerEncoderLayer)):
            wide = item.input_size if isinstance(item, nn.RNNBase) else item.linear1.in_features
            if getattr(item, "batch_first", None) or getattr(
                getattr(item, "self_attn", None), "batch_first", False
            ):
                return Batch(
                    torch.randn(rows, length or LENGTH, wide, generator=draw), {"": Axes(0, (1,))}
                )
        if isinstance(item, nn.Linear):
            return Batch(torch.randn(rows, item.in_features, generator=draw), {"": Axes(0, ())})
        if isinstance(item, nn.Conv2d):
            return Batch(
                torch.randn(rows, item.in_channels, 32, 32, generator=draw), {"": Axes(0, ())}
            )
        if isinstance(item, nn.Conv1d):
            return Batch(
                torch.randn(rows, item.in_channels, length or 64, generator=draw),
                {"": Axes(0, (2,))},
            )
    raise named_object.NamedObjectError(
        f"What {type(model).__name__} takes cannot be guessed; {ASK}."
    )
