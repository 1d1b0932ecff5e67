"""One knob, turned inside the ranks of the user's program, where no option and no variable reaches.

TRAINPROBE_KNOB names it: `workers=0`, `start=spawn`, `batch=half`, `evaluation=off`. Each is a
change of what a library does, made once, right after the library's module was executed; where a
version differs, nothing is changed and nothing breaks. With TRAINPROBE_ABLATE and no knob it is
only told what a knob could change. How often it took hold is told as the event `knob.applied` with
`count`: a knob that changed nothing has shown nothing.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, List, Tuple

Tell = Callable[..., None]
After = Callable[[Any], None]
# DataLoader refuses these where there are no workers.
FOR_WORKERS = (
    "prefetch_factor",
    "persistent_workers",
    "multiprocessing_context",
    "timeout",
    "worker_init_fn",
)
TRAINERS = (
    "transformers.trainer",
    "lightning.pytorch.trainer.trainer",
    "pytorch_lightning.trainer.trainer",
)


class Applied:
    """Counts how often the knob took hold, and tells the first time, and then at every doubling."""

    def __init__(self, knob: str, tell: Tell) -> None:
        self.knob, self.tell, self.count = knob, tell, 0

    def once_more(self) -> None:
        self.count += 1
        if self.count & (self.count - 1) == 0:
            self.tell(
                "note", "knob.applied", says="The knob took hold.", knob=self.knob, count=self.count
            )


def wrapped(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Put what `make` makes of the function in its place, with the signature that it had."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, functools.wraps(original)(make(original)))


def without_workers(applied: Applied) -> Dict[str, After]:
    def after(module: Any) -> None:
        def make(init: Callable[..., Any]) -> Callable[..., Any]:
            def changed(self: Any, *args: Any, **kwargs: Any) -> None:
                # Its place in the signature: dataset, batch_size, shuffle, sampler, batch_sampler,
                # num_workers, ...
                if len(args) > 5 and args[5]:
                    args = (*args[:5], 0, *args[6:])
                    applied.once_more()
                elif kwargs.get("num_workers"):
                    kwargs["num_workers"] = 0
                    applied.once_more()
                for name in FOR_WORKERS[:-1]:
                    kwargs.pop(name, None)
                init(self, *args, **kwargs)

            return changed

        wrapped(module.DataLoader, "__init__", make)

    return {"torch.utils.data.dataloader": after}


def spawned(applied: Applied) -> Dict[str, After]:
    def default(module: Any) -> None:
        """What a program gets that asks for no start method; one that sets it itself still can."""
        if "spawn" in module._concrete_contexts:
            module._default_context._default_context = module._concrete_contexts["spawn"]

    def counted(module: Any) -> None:
        def make(launch: Callable[..., Any]) -> Callable[..., Any]:
            def _launch(self: Any, *args: Any) -> Any:
                applied.once_more()
                return launch(self, *args)

            return _launch

        wrapped(module.Popen, "_launch", make)

    def loaders(module: Any) -> None:
        def make(init: Callable[..., Any]) -> Callable[..., Any]:
            def changed(self: Any, *args: Any, **kwargs: Any) -> None:
                if (args[5] if len(args) > 5 else kwargs.get("num_workers")) and kwargs.get(
                    "multiprocessing_context"
                ) is not None:
                    kwargs["multiprocessing_context"] = "spawn"
                init(self, *args, **kwargs)

            return changed

        wrapped(module.DataLoader, "__init__", make)

    made: Dict[str, After] = {"torch.utils.data.dataloader": loaders}
    for package in ("multiprocessing", "multiprocess"):  # the second is the one of `datasets`
        made[f"{package}.context"] = default
        made[f"{package}.popen_spawn_posix"] = counted
    return made


def smaller_batches(applied: Applied) -> Dict[str, After]:
    # (id of a data set, batch size) that we have set: libraries make a loader again from one that
    # is
    halved: List[Tuple[int, int]] = []

    def after(module: Any) -> None:
        def make(init: Callable[..., Any]) -> Callable[..., Any]:
            def changed(self: Any, *args: Any, **kwargs: Any) -> None:
                dataset = args[0] if args else kwargs.get("dataset")
                size = args[1] if len(args) > 1 else kwargs.get("batch_size")
                if isinstance(size, int) and size > 1 and (id(dataset), size) not in halved:
                    half = size // 2
                    halved.append((id(dataset), half))
                    if len(args) > 1:
                        args = (args[0], half, *args[2:])
                    else:
                        kwargs["batch_size"] = half
                    applied.once_more()
                init(self, *args, **kwargs)

            return changed

        wrapped(module.DataLoader, "__init__", make)

    return {"torch.utils.data.dataloader": after}


class NoEvaluation(Dict[str, float]):
    """What an evaluation returns that did not happen: any number that is asked for is 0."""

    def __missing__(self, name: str) -> float:
        return 0.0


def without_evaluation(applied: Applied) -> Dict[str, After]:
    def transformers(module: Any) -> None:
        def evaluate(_original: Callable[..., Any]) -> Callable[..., Any]:
            def none(*_: Any, **__: Any) -> Any:
                applied.once_more()
                return NoEvaluation(eval_loss=0.0)

            return none

        wrapped(module.Trainer, "evaluate", evaluate)

    def lightning(module: Any) -> None:
        def make(init: Callable[..., Any]) -> Callable[..., Any]:
            def changed(self: Any, *args: Any, **kwargs: Any) -> None:
                applied.once_more()
                init(self, *args, **{**kwargs, "limit_val_batches": 0, "num_sanity_val_steps": 0})

            return changed

        wrapped(module.Trainer, "__init__", make)

    return dict(zip(TRAINERS, (transformers, lightning, lightning)))


def what_is_there(tell: Tell) -> Dict[str, After]:
    """Without a knob: tell only which framework could be told to leave its evaluation out."""

    def after(module: Any) -> None:
        tell("note", "trainer", says="A Trainer was imported.", module=module.__name__)

    return dict.fromkeys(TRAINERS, after)


KNOBS: Dict[str, Callable[[Applied], Dict[str, After]]] = {
    "workers=0": without_workers,
    "start=spawn": spawned,
    "batch=half": smaller_batches,
    "evaluation=off": without_evaluation,
}


def hooks(knob: str, tell: Tell) -> Dict[str, After]:
    """What to do after which module was executed; at once for modules that are loaded."""
    if not knob:
        return what_is_there(tell)
    make = KNOBS.get(knob)
    return {} if make is None else make(Applied(knob, tell))


def turn(
    knob: str, tell: Tell, after_import: Dict[str, After], guarded: Callable[[After], After]
) -> None:
    """Add the knob's hooks to those of the witness, behind them where both want the same module."""
    for name, hook in hooks(knob, tell).items():
        before = after_import.get(name)
        both = guarded(hook) if before is None else _both(guarded(before), guarded(hook))
        if name in sys.modules and before is None:
            both(sys.modules[name])
        else:
            after_import[name] = both


def _both(first: After, second: After) -> After:
    def after(module: Any) -> None:
        first(module)
        second(module)

    return after
