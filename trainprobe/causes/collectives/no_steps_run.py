"""The run ended "successfully" without doing its work.

A filter that keeps nothing, a path that matches no file, `max_steps` below the step that was
resumed: the loop runs zero times and the program ends with exit code 0. Nothing complains.

It is recognised by exit code 0 on all ranks while the witness saw no optimizer step and no backward
pass, above all when a loader gave no batch at all. A single step anywhere rules it out. Of a log it
is recognised by words of an end that come at step 0 or short of the plan, and by a loader or data
set that is said to be empty.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import quote
from trainprobe.facts import LogJob, LogProgress, Progress

# Log events (signatures/) that say that there was nothing to train on.
NOTHING = ("no-steps", "empty-loader", "empty-dataset", "already-trained", "nothing-to-do")
SHORT = 0.98  # of its plan: the last line that is printed need not be that of the last step


def _weigh(scene: Scene) -> Weighings:
    shown = scene.progress(scene.world)
    stepped = [
        fact for fact in shown if (fact.optimizer_steps or 0) > 0 or (fact.backward_calls or 0) > 0
    ]
    if stepped:
        steps = max(fact.optimizer_steps or 0 for fact in stepped)
        yield weighing(-26, "probe-outcome", f"The witness saw {steps} optimizer steps", *stepped)
        return
    if (job := scene.one(LogJob)) is not None:
        yield from _from_log(scene, job)
        return
    ends = [end for end in scene.endings(scene.world) if not (end.by_us or end.by_launcher)]
    if any(end.abnormal for end in ends):
        yield weighing(
            -26, "exit-status", "A rank ended with an error", *[end for end in ends if end.abnormal]
        )
        return
    if not ends or not all(end.how == "exited" and end.code == 0 for end in ends):
        return
    counted = [fact for fact in shown if fact.optimizer_steps == 0]
    if counted and len(counted) == len(scene.world):
        says = f"All {len(counted)} ranks ended with exit code 0 and made no optimizer step"
        yield weighing(13, "probe-outcome", says, *counted, *ends)
    empty = [fact for fact in shown if fact.loader_empty]
    if empty:
        length = next(
            (
                f", its dataset has {fact.dataset_len} samples"
                for fact in empty
                if fact.dataset_len is not None
            ),
            "",
        )
        yield weighing(13, "suspects-log", f"A data loader gave no batch{length}", *empty)
    printed = [fact for fact in shown if (fact.output_steps or 0) > 0]
    if printed:  # some frameworks step without torch.optim
        says = f"The output counts up to step {max(fact.output_steps or 0 for fact in printed)}"
        yield weighing(-13, "suspects-log", says, *printed)
    if counted and all(fact.torch_imported is False for fact in counted):
        says = "The program never imported torch, so it may not be meant to train"
        yield weighing(-13, "source", says, *counted)


def _from_log(scene: Scene, job: LogJob) -> Weighings:
    """What logs tell: an end that was announced, and how far the job had come by then."""
    bars = scene.of(LogProgress)
    first = scene.first_failure
    if first is not None and not first.echo:
        yield weighing(-26, "exit-status", f"It ended with an error: {short(first.says, 100)}", job)
        return
    empty = scene.events(*NOTHING)
    if empty:
        yield quote(13, "The output says", empty[0])
    step, of, done = _count(scene)
    ended = scene.events("training-ended", "launcher-succeeded")
    # ranks that wait have not ended, and an excerpt need not show the steps before
    if not (done or ended or empty) or (scene.group.mode == "hang" and not empty):
        return
    # a plan, or the step that was resumed, is no step taken
    if step and not empty and not (of and step < SHORT * of):
        says = f"The output counts up to step {step}{f' of {of}' if of else ''}"
        yield weighing(-26, "probe-outcome", says, *bars)
    elif done or ended:
        far = "no step at all"
        if of:
            far = f"step {step} of {of}"
        elif step is not None:
            far = f"step {step}"
        says = f"It says that it is done at {far}"
        yield weighing(
            13 if not step or 2 * step <= (of or 0) else 10, "probe-outcome", says, *(bars or ended)
        )
    if (
        resumed := first_found(
            event
            for event in scene.events("resumed-at")
            if event.captured.get("step", "").isdecimal()
        )
    ) is not None and not step:
        yield weighing(6, "source", f"It resumed at step {resumed.captured['step']}", resumed)


def _count(scene: Scene) -> tuple[int | None, int | None, bool]:
    """(the last step of any rank, of how many, whether an end was announced)."""
    bars = scene.of(LogProgress)
    steps = [bar.step for bar in bars if bar.step is not None]
    plans = [bar.of for bar in bars if bar.of]
    return max(steps, default=None), max(plans, default=None), any(bar.finished for bar in bars)


def _empty(scene: Scene) -> Progress | None:
    return next((fact for fact in scene.progress(scene.world) if fact.loader_empty), None)


def _summary(scene: Scene) -> str:
    empty = _empty(scene)
    length = ""
    if empty is not None and empty.dataset_len is not None:
        length = f" (its dataset has {empty.dataset_len} samples)"
    if scene.one(LogJob) is not None:
        step, of, _ = _count(scene)
        reported = scene.events(*NOTHING)
        reason = f": {short(reported[0].line, 120)}" if reported else ""
        total = f" of {of}" if of else ""
        return f"The run ended as if it were done at step {step or 0}{total}{reason}"
    why = f" because a data loader gave no batch{length}" if empty is not None else ""
    return f"The run ended with exit code 0 at step 0{why}"


CAUSE = Cause(
    id="no-steps-run",
    title="The run ended without doing a step",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Look at what the loader is given
            print(len(dataset), len(loader)) before the loop
            check paths, filters, drop_last with a small dataset, and the split's name
        Look at how long the loop may run
            compare max_steps and num_epochs with the step that the checkpoint resumes at
        Make it fail loudly
            assert len(loader) > 0, 'the data loader is empty'
    """),
    ranks=nobody,
    would_settle="print(len(dataset), len(loader)) before the training loop",
)
