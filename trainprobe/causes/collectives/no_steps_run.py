"""The run ended "successfully" without doing its work.

A filter that keeps nothing, a path that matches no file, `max_steps` below the step that was resumed: the loop runs zero times and the
program ends with exit code 0. Nothing complains.

It is recognised by exit code 0 on all ranks while the witness saw no optimizer step and no backward pass, above all when a loader gave
no batch at all. A single step anywhere rules it out. Without the witness nothing is said, for then nothing was counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts, Progress
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    seen = scene.progress(scene.world)
    stepped = [fact for fact in seen if (fact.optimizer_steps or 0) > 0 or (fact.backward_calls or 0) > 0]
    if stepped:
        steps = max(fact.optimizer_steps or 0 for fact in stepped)
        yield weighing(-26, "probe-outcome", f"The witness saw {steps} optimizer steps", *stepped)
        return
    ends = [end for end in scene.endings(scene.world) if not (end.by_us or end.by_launcher)]
    if any(end.abnormal for end in ends):
        yield weighing(-26, "exit-status", "A rank ended with an error", *[end for end in ends if end.abnormal])
        return
    if not ends or not all(end.how == "exited" and end.code == 0 for end in ends):
        return
    counted = [fact for fact in seen if fact.optimizer_steps == 0]
    if counted and len(counted) == len(scene.world):
        yield weighing(13, "probe-outcome", f"All {len(counted)} ranks ended with exit code 0 and made no optimizer step", *counted, *ends)
    empty = [fact for fact in seen if fact.loader_empty]
    if empty:
        length = next((f", its dataset has {fact.dataset_len} samples" for fact in empty if fact.dataset_len is not None), "")
        yield weighing(13, "suspects-log", f"A data loader gave no batch{length}", *empty)
    printed = [fact for fact in seen if (fact.output_steps or 0) > 0]
    if printed:  # some frameworks step without torch.optim
        yield weighing(-13, "suspects-log", f"The output counts up to step {max(fact.output_steps or 0 for fact in printed)}", *printed)
    if counted and all(fact.torch_imported is False for fact in counted):
        yield weighing(-13, "source", "The program never imported torch, so it may not be meant to train", *counted)


def _empty(scene: Scene) -> Progress | None:
    return next((fact for fact in scene.progress(scene.world) if fact.loader_empty), None)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    empty = _empty(scene)
    length = f" (its dataset has {empty.dataset_len} samples)" if empty is not None and empty.dataset_len is not None else ""
    why = f" because a data loader gave no batch{length}" if empty is not None else ""
    return sentence(f"The run ended with exit code 0 at step 0{why}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "Look at what the loader is given",
            "print(len(dataset), len(loader)) before the loop",
            "check paths, filters, drop_last with a small dataset, and the split's name",
        ),
        fix(scene, "Look at how long the loop may run", "compare max_steps and num_epochs with the step that the checkpoint resumes at"),
        fix(scene, "Make it fail loudly", "assert len(loader) > 0, 'the data loader is empty'"),
    )


CAUSE = Cause(
    id="no-steps-run",
    title="The run ended without doing a step",
    means="The run ended with exit code 0 at step 0: it did none of its work.",
    telling="All ranks ended with exit code 0 and made no optimizer step; often a loader that gave no batch.",
    modes=("check", "crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="print(len(dataset), len(loader)) before the training loop",
)
