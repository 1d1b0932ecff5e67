"""Progress lines of frameworks and of people."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.steps import Step, has_loss, read_step, steps_in


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "Training:  12%|█▏        | 120/1000 [00:10<01:12, 12.1it/s]",
            Step(120, 1000, None, None, "train"),
        ),
        (" 12%|#2        | 120/1000 [00:10<01:12, 12.1it/s]", Step(120, 1000)),
        (
            " 12%|#2        | 120/1000 [00:10<01:12, 12.1it/s, loss=0.5]",
            Step(120, 1000, None, None, "train"),
        ),
        (
            "Epoch 3:  45%|████      | 9/20 [00:01<00:01,  8.2it/s, v_num=0]",
            Step(9, 20, 3.0, None, "train"),
        ),
        (
            "Epoch 3/9 ━━━━━━━━━━ 20/20 0:00:01 • 0:00:00 12.3it/s v_num: 0",
            Step(20, 20, 3.0, 9, "train"),
        ),
        (
            "Validation DataLoader 0:  45%|████      | 9/20 [00:01<00:01,  8.2it/s]",
            Step(9, 20, None, None, "eval"),
        ),
        (
            "Sanity Checking DataLoader 0: 100%|████| 2/2 [00:00<00:00,  8.2it/s]",
            Step(2, 2, None, None, "eval"),
        ),
        (
            "Map (num_proc=8):  12%|█         | 1200/10000 [00:01<00:10, 800.1 examples/s]",
            Step(1200, 10000, None, None, "data"),
        ),
        (
            "Tokenizing:  12%|█         | 12k/100k [00:01<00:10, 8.1kit/s]",
            Step(12000, 100000, None, None, "data"),
        ),
        (
            "Generating train split: 100 examples [00:00, 3000.1 examples/s]",
            Step(100, None, None, None, "data"),
        ),
        (
            "model.safetensors:  10%|█         | 1.00G/10.0G [00:10<01:30, 100MB/s]",
            Step(10**9, 10**10, None, None, "data"),
        ),
        (
            "Loading checkpoint shards:  50%|█████     | 1/2 [00:01<00:01, 1.1s/it]",
            Step(1, 2, None, None, "load"),
        ),
        (
            "Capturing CUDA graph shapes:  50%|█████     | 1/2 [00:01<00:01, 1.1s/it]",
            Step(1, 2, None, None, "compile"),
        ),
        (
            "{'loss': 1.2, 'grad_norm': 3.1, 'learning_rate': 5e-05, 'epoch': 0.5}",
            Step(None, None, 0.5, None, "train"),
        ),
        (
            "{'loss': '1.2', 'learning_rate': '5e-05', 'epoch': '0.5'}",
            Step(None, None, 0.5, None, "train"),
        ),
        (
            "{'eval_loss': 1.2, 'eval_runtime': 3.1, 'epoch': 1.0}",
            Step(None, None, 1.0, None, "eval"),
        ),
        ("  Total optimization steps = 1,000", Step(None, 1000, None, None, "train")),
        ("  Num Epochs = 3", Step(None, None, None, 3, "train")),
        (
            (
                "[2024-11-21 10:11:12,345] [INFO] [logging.py:96:log_dist] [Rank 0] step=10,"
                " skipped=0, lr=[1e-05], mom=[(0.9, 0.999)]"
            ),
            Step(10, None, None, None, "train"),
        ),
        (
            "steps: 10 loss: 1.2 iter time (s): 0.3 samples/sec: 100.0",
            Step(10, None, None, None, "train"),
        ),
        (
            " [2024-11-21 10:11:12] iteration      100/    5000 | consumed samples:          800 |",
            Step(100, 5000, None, None, "train"),
        ),
        (
            " validation loss at iteration 100 | lm loss value: 3.1E+00 |",
            Step(100, None, None, None, "eval"),
        ),
        (
            "saving checkpoint at iteration     100 to /ckpt in torch_dist format",
            Step(100, None, None, None, "save"),
        ),
        ("epoch 001:     10 / 1000 loss=3.1, ppl=3.2", Step(10, 1000, 1.0, None, "train")),
        (
            "Epoch(train)  [1][  50/1000]  lr: 1.0e-03  eta: 1:00:00",
            Step(50, 1000, 1.0, None, "train"),
        ),
        ("Epoch(val) [1][10/20]    eta: 0:00:10", Step(10, 20, 1.0, None, "eval")),
        ("Iter(train) [  100/90000]  lr: 1.0e-03", Step(100, 90000, None, None, "train")),
        ("Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)", Step(50, 1251, 0.0, None, "train")),
        ("Test: [  10/50]\tTime 0.1", Step(10, 50, None, None, "eval")),
        ("Epoch: [2]  [  10/5005]  eta: 1:00:00  lr: 0.1", Step(10, 5005, 2.0, None, "train")),
        ("Epoch: [2][  10/5005]\tTime 0.1", Step(10, 5005, 2.0, None, "train")),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3", Step(640, 60000, 1.0, None, "train")),
        (
            "step: 10  loss: 8.1000  grad_norm: 1.0  memory:  2.00GiB(3%)",
            Step(10, None, None, None, "train"),
        ),
        ("iter 10: loss 1.2, time 30.1ms, mfu 20%", Step(10, None, None, None, "train")),
        ("step:10/1750 train_loss:3.1 train_time:10ms", Step(10, 1750, None, None, "train")),
        ("Step [10/100], Loss: 0.5", Step(10, 100, None, None, "train")),
        ("Epoch 1/10", Step(None, None, 1.0, 10, "train")),
        ("[Epoch 1/5] [Batch 10/100] [loss 0.3]", Step(10, 100, 1.0, 5, "train")),
        ("Running validation at step 10", Step(10, None, None, None, "eval")),
        ("Saving model checkpoint to out/checkpoint-500", Step(kind="save")),
        ("  Continuing training from global step 1000", Step(1000, None, None, None, "load")),
        ("Resumed from checkpoint at step 500", Step(500, None, None, None, "load")),
        ("Saved checkpoint at step 500", Step(500, None, None, None, "save")),
        ("Compiling the model with torch.compile", Step(kind="compile")),
    ],
)
def test_progress(line: str, step: Step) -> None:
    assert read_step(line) == step


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            (
                "{'train_runtime': 12.3, 'train_samples_per_second': 100.1,"
                " 'train_steps_per_second': 1.2, 'train_loss': 2.0, 'epoch': 3.0}"
            ),
            None,
        ),
        ("Training completed. Do not forget to share your model on huggingface.co/models =)", None),
        ("`Trainer.fit` stopped: `max_steps=100` reached.", 100),
        ("`Trainer.fit` stopped: `max_epochs=3` reached.", None),
        ("[after training is done] datetime: 2024-11-21 10:11:12", None),
        ("2024-11-21 10:11:12 | INFO | fairseq_cli.train | done training in 12.3 seconds", None),
        ("Training completed", None),
        ("Finished training after 100 steps", 100),
        ("Training time 0:10:00", None),
        ("100 epochs completed in 0.1 hours.", None),
        ("***** train metrics *****", None),
    ],
)
def test_the_end_of_a_training(line: str, step: int | None) -> None:
    found = read_step(line)
    assert found is not None
    assert found.finished
    assert found.step == step


@pytest.mark.parametrize(
    "line",
    [
        "Training has not finished",
        "wait until training is done",
        "training epoch 3 completed",
        "Error: training finished with an exception",
        "5% of training done",
        "Saving after training completed will fail if the disk is full",
    ],
)
def test_not_the_end_of_a_training(line: str) -> None:
    found = read_step(line)
    assert found is None or not found.finished


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: batch size 3 does not fit",
        "NCCL WARN Timeout(ms)=600000",
        (
            "WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran"
            " for 600001 milliseconds"
        ),
        "max_steps: 100",
        '  File "/a/train.py", line 12, in training_step',
        "hello",
        "",
    ],
)
def test_no_progress(line: str) -> None:
    assert read_step(line) is None


def test_numbers_of_a_plan_are_no_steps() -> None:
    assert steps_in("warmup for 100 steps, max step 500") == []
    assert steps_in("ran 0 steps") == [0, 0]
    assert steps_in("step 3 of step 4") == [3, 4]
    assert has_loss("step 3 loss nan")
    assert not has_loss("loss function: cross entropy")


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    read_step(text)


@pytest.mark.parametrize(
    "unit",
    [
        "1%|",
        "step ",
        "Epoch [1][",
        "{'loss':",
        "━",
        "epoch 1 ",
        "12/100 [00:",
        "training done ",
        "1,",
        "{'a': 'epoch': ",
    ],
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    read_step(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 0.5
