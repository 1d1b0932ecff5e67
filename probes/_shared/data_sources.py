"""Recognises datasets, iterables, loaders and data modules of a factory; makes loaders."""

from __future__ import annotations

import inspect
import multiprocessing
from typing import Any, Dict, List, NamedTuple, Optional

# Containers of plain values: a list of them is data, not a list of datasets.
PLAIN = (
    str,
    bytes,
    bytearray,
    int,
    float,
    complex,
    bool,
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    type(None),
)
BATCH = 8  # transformers' per_device_train_batch_size


class NonsenseError(Exception):
    """The factory gave something that no loader can read. The text is a sentence."""


class Source(NamedTuple):
    """One dataset or loader. `kind`: map (rows by number), stream (IterableDataset), loader
    (torch's DataLoader), opaque (an iterable of batches of its own).
    """

    name: str
    kind: str
    data: Any

    @property
    def dataset(self) -> Any:
        return self.data.dataset if self.kind == "loader" else self.data

    @property
    def streams(self) -> bool:
        """Its rows have no numbers: they come in the order of the stream."""
        return self.kind == "stream" or (self.kind == "loader" and _is_stream(self.data.dataset))


class Want(NamedTuple):
    """How to make a loader: `method` none, fork, spawn, forkserver; `batch` None is the user's."""

    rows: int
    workers: int
    method: str
    ranks: int = 1
    rank: int = 0
    batch: Optional[int] = None
    collate: Any = None


def call(found: Any, rows: int) -> Any:
    """What a factory gives, `rows` passed if its signature has it; data is returned as it is."""
    if not isinstance(found, type) and (is_data(found) or not callable(found)):
        return found
    return found(rows=rows) if takes_rows(found) else found()


def takes_rows(found: Any) -> bool:
    if not callable(found) or (not isinstance(found, type) and is_data(found)):
        return False
    try:
        return "rows" in inspect.signature(found).parameters
    except (TypeError, ValueError):  # a builtin has no signature
        return False


def is_data(found: Any) -> bool:
    return (
        isinstance(found, PLAIN)
        or (hasattr(found, "__getitem__") and hasattr(found, "__len__"))
        or hasattr(found, "__iter__")
        or _is_module(found)
    )


def sources_of(produced: Any) -> List[Source]:
    """Tell apart what was given, the first being what is trained on. Raises NonsenseError."""
    if _is_module(produced):
        return _of_module(produced)
    if (
        hasattr(produced, "keys")
        and hasattr(produced, "values")
        and not hasattr(produced, "pipeline")
    ):
        return _of_mapping(produced)
    if (
        isinstance(produced, (list, tuple))
        and produced
        and not isinstance(produced[0], PLAIN)
        and all(_is_dataset(item) for item in produced)
    ):
        names = ["train", "validation", "test"] if len(produced) <= 3 else []
        return [
            Source(names[place] if names else str(place), kind_of(item), item)
            for place, item in enumerate(produced)
        ]
    return [Source("train", kind_of(produced), produced)]


def kind_of(produced: Any) -> str:
    """Raises NonsenseError with what it is and what it lacks."""
    import torch.utils.data

    what = (
        f"{produced!r:.60}"
        if isinstance(produced, (int, float, str, bytes, bool, type(None)))
        else f"an object of type {type(produced).__name__}"
    )
    if isinstance(produced, type):
        raise NonsenseError(f"The factory gave the class {produced.__name__}, not an object of it.")
    if isinstance(produced, torch.utils.data.DataLoader):
        return "loader"
    # webdataset.WebLoader
    if isinstance(
        next(iter(getattr(produced, "pipeline", None) or [None])), torch.utils.data.DataLoader
    ):
        return "opaque"
    if _is_stream(produced):
        return "stream"
    if isinstance(produced, (str, bytes, int, float, set, type(None))):
        raise NonsenseError(f"The factory gave {what}, which is no dataset.")
    if (
        hasattr(produced, "__next__")
        or inspect.isawaitable(produced)
        or inspect.isasyncgen(produced)
    ):
        raise NonsenseError(
            f"The factory gave {what}, which can be read only once and not by workers; use an"
            " IterableDataset."
        )
    if hasattr(produced, "__getitem__") and hasattr(produced, "__len__"):
        return "map"
    if hasattr(produced, "__getitem__"):
        raise NonsenseError(f"The factory gave {what}, which has __getitem__ and no __len__.")
    if hasattr(produced, "__iter__"):
        return "opaque"
    raise NonsenseError(
        f"The factory gave {what}, which has neither __len__ and __getitem__ nor __iter__."
    )


def length_of(source: Source) -> Optional[int]:
    """The number of rows, None where unknown. Raises NonsenseError, and what len() raises."""
    dataset = source.dataset
    if source.kind == "opaque" or not hasattr(dataset, "__len__"):
        return None
    try:
        length = len(dataset)
    except (TypeError, NotImplementedError):
        if source.streams:
            return None
        raise
    except ValueError as error:  # what Python makes of a negative length
        raise NonsenseError(
            f"The length of the {source.name} data is no number of rows ({error})."
        ) from error
    if length == 0 and not source.streams:
        raise NonsenseError(f"The {source.name} data has no rows: len() is 0.")
    return length


def as_list(samples: Any) -> Any:
    """The collate function of samples that torch's own cannot stack: it leaves them as they are."""
    return samples


def loader(source: Source, want: Want) -> Any:
    """An iterable of batches over at most `want.rows` rows; the reader stops a stream."""
    import torch.utils.data

    if source.kind == "opaque":
        return source.data
    if source.kind == "loader":
        return _varied(source.data, want)
    settings = {**_workers(want), "batch_size": want.batch or BATCH, "collate_fn": want.collate}
    if source.kind == "stream":
        settings["batch_size"] = min(settings["batch_size"], want.rows)
        return torch.utils.data.DataLoader(source.data, **settings)
    part = first_rows(source.data, want.rows)
    if want.ranks > 1:
        settings["sampler"] = torch.utils.data.DistributedSampler(
            part, want.ranks, want.rank, shuffle=False
        )
    return torch.utils.data.DataLoader(part, **settings)


def first_rows(dataset: Any, rows: int) -> Any:
    """The first rows of what has numbers; Hugging Face's own way keeps its reads in one piece."""
    import torch.utils.data

    if len(dataset) <= rows:
        return dataset
    if type(dataset).__module__.split(".")[0] == "datasets" and hasattr(dataset, "select"):
        return dataset.select(range(rows))
    return torch.utils.data.Subset(dataset, range(rows))


def _varied(old: Any, want: Want) -> Any:
    """The user's loader with other workers; as it is where nothing else is asked for."""
    import torch.utils.data

    own_method = (
        old.multiprocessing_context.get_start_method()
        if old.multiprocessing_context is not None
        else multiprocessing.get_start_method()
    )
    same_workers = want.workers == old.num_workers and (
        not want.workers or want.method == own_method
    )
    if same_workers and want.batch is None and want.collate is None:
        return old
    settings = {
        **_workers(want),
        "collate_fn": want.collate or old.collate_fn,
        "worker_init_fn": old.worker_init_fn,
        "generator": old.generator,
    }
    if want.workers:
        settings.update(
            timeout=old.timeout,
            prefetch_factor=old.prefetch_factor,
            persistent_workers=old.persistent_workers,
        )
    if _is_stream(old.dataset) or old.batch_size is None:
        by_number = {} if _is_stream(old.dataset) else {"sampler": old.sampler}
        batches = {
            "batch_size": want.batch or old.batch_size,
            "drop_last": old.drop_last,
            **by_number,
        }
        if old.batch_size is None and old.batch_sampler is not None:
            batches = {"batch_sampler": old.batch_sampler}
    elif want.batch is None:
        batches = {"batch_sampler": old.batch_sampler}
    else:
        batches = {"batch_size": want.batch, "sampler": old.sampler, "drop_last": old.drop_last}
    return torch.utils.data.DataLoader(old.dataset, **settings, **batches)


def _workers(want: Want) -> Dict[str, Any]:
    return {
        "num_workers": want.workers,
        "multiprocessing_context": want.method if want.workers else None,
    }


def _is_stream(produced: Any) -> bool:
    import torch.utils.data

    return isinstance(produced, torch.utils.data.IterableDataset)


def _is_module(produced: Any) -> bool:
    """Lightning's data module, by what a trainer calls on it."""
    return (
        not isinstance(produced, type)
        and callable(getattr(produced, "train_dataloader", None))
        and callable(getattr(produced, "setup", None))
    )


def _is_dataset(produced: Any) -> bool:
    return (
        not isinstance(produced, (*PLAIN, type))
        and not hasattr(produced, "dtype")
        and (hasattr(produced, "__getitem__") or hasattr(produced, "__iter__"))
    )


def _of_module(module: Any) -> List[Source]:
    """Do with it what a trainer does, in its order."""
    module.prepare_data()
    module.setup("fit")
    found: List[Source] = []
    for name in ("train", "val"):
        made = getattr(module, f"{name}_dataloader", lambda: None)()
        made = getattr(made, "iterables", made)  # lightning's CombinedLoader
        several = (
            made
            if isinstance(made, dict)
            else dict(enumerate(made))
            if isinstance(made, (list, tuple))
            else {"": made}
        )
        found += [
            Source(f"{name}{key}", kind_of(item), item)
            for key, item in several.items()
            if item is not None
        ]
    if not found:
        raise NonsenseError(
            f"{type(module).__name__} gave no loader: train_dataloader() and val_dataloader()"
            " returned nothing."
        )
    return found


def _of_mapping(produced: Any) -> List[Source]:
    names = list(produced.keys())
    if (
        names
        and all(isinstance(name, int) for name in names)
        and sorted(names) == list(range(len(names)))
    ):
        return [Source("train", "map", produced)]
    if not names:
        raise NonsenseError("The factory gave an empty dict.")
    wrong = [
        name
        for name in names
        if isinstance(produced[name], (*PLAIN, type))
        and not isinstance(produced[name], (list, tuple))
    ]
    if wrong:
        raise NonsenseError(
            f"The factory gave a dict whose {wrong[0]!r} is no dataset but"
            f" {type(produced[wrong[0]]).__name__}."
        )
    found = [Source(str(name), kind_of(produced[name]), produced[name]) for name in names]
    return sorted(found, key=lambda source: not source.name.startswith("train"))
