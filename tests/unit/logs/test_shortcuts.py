"""What spares time where there are a thousand files must change no answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trainprobe.logs.environment_reports import read_environment_report
from trainprobe.logs.kinds import kind_of
from trainprobe.logtext import steps
from trainprobe.logtext.plain import plain_states
from trainprobe.logtext.wrapped_lines import wrap_width
from trainprobe.redact import Redactor
from trainprobe.signatures import all_signatures, match_line

LINES = (
    "step 12/100 loss=0.25 lr=1.0e-4",
    "Epoch 3 | 120it [00:10, 12it/s] loss 0.1",
    " 45%|####5     | 45/100 [00:10<00:12,  4.4it/s, loss=0.3]",
    "trained for 20 steps",
    "trained for 0 steps",
    "no steps were run",
    "Training completed. Do not forget to share your model",
    "saving checkpoint at iteration 300",
    "evaluating 7 batches",
    "node7 is well, 3 of 4 links are up",
    "━━━━━━━━━━ 31/400 0:00:12",
    "wrote 10 files: 1:02",
    "wrote 10 files: 0:02",
)


def test_what_a_line_tells_of_progress_hangs_on_nothing_that_was_read_before() -> None:
    draw = random.Random(1)

    def fresh(line: str) -> Any:
        for known in (steps._SILENT, steps._NOT_FINISHED):
            known.clear()
        steps._kind_of_shape.cache_clear()
        return steps.read_step(line)

    lines = [
        "".join(
            str(draw.randint(0, 9)) if c.isdigit() and draw.random() < 0.7 else c
            for c in draw.choice(LINES)
        )
        for _ in range(600)
    ]
    alone = [fresh(line) for line in lines]
    fresh("")
    assert [steps.read_step(line) for line in lines] == alone
    assert any(told is None for told in alone)
    assert any(told is not None and told.finished for told in alone)


def test_a_long_list_of_rows_is_redacted_as_each_row_is() -> None:
    rows = [[number, None, 3, "node7", f"step {number} loss 0.1"] for number in range(200)]
    told, count = Redactor({}).data({"rows": rows})
    assert (told, count) == ({"rows": rows}, 0)
    secret = [
        *rows,
        [200, None, 3, "node7", "HF_TOKEN=hf_abcdefghijklmnop0123456789"],
        [201, float("nan"), 3, "", "a\x1b[31mb\x07"],
    ]
    told, count = Redactor({}).data({"rows": secret})
    assert count == 1
    assert "abcdefghijklmnop" not in str(told)
    assert told["rows"][-1] == [201, "nan", 3, "", "ab"]
    assert told["rows"][:200] == rows


def test_an_option_that_takes_a_secret_is_seen_among_many_rows() -> None:
    told, count = Redactor({}).data([["--api-token", "abcdef123456"], *([["a", "b"]] * 50)])
    assert count == 1
    assert "abcdef123456" not in str(told)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("loss 0.3\n" + "AAA=1\n" * 1500, "log"),
        ("AAA=1\n" * 600 + "Traceback (most recent call last):\n" + "AAA=1\n" * 600, "log"),
        ("AAA=1\n" * 1500, "given"),
        ("[    1.000000] usb 1: new\n" * 900, "kernel-log"),
    ],
    ids=["a word at the beginning", "a traceback in the middle", "variables", "kernel"],
)
def test_a_long_head_is_told_by_its_ends_and_by_every_word_of_a_job(head: str, kind: str) -> None:
    assert kind_of(head.encode()) == kind


def test_a_line_that_tells_nothing_hides_none_of_the_same_form_that_does() -> None:
    text = (
        "Driver 1 of 2\nopen files                      (-n) 1024\nopen files                     "
        " (-n) 65536\nGPU 0: Tesla\nGPU 1: Tesla\n"
    )
    found = read_environment_report(text)
    assert found["limit.nofile"] == "65536"
    assert found["gpus_per_node"] == "2"


@pytest.mark.parametrize(
    "colour",
    ["[31m", "^[[0m", "\\x1b[31m", "\\u001b[0m", "#033[0m", "\u241b[1;31m", "\\e[0m", "\ufffd[0m"],
)
def test_spelt_out_colours_go_by_every_spelling(colour: str) -> None:
    assert plain_states(f"[rank3]: {colour}Error") == ["[rank3]: Error"]


def test_the_events_asked_for_are_those_of_all_hits() -> None:
    told = [signature for signature in all_signatures() if signature.example]
    assert len(told) > 100
    for signature in told:
        every = [
            hit.signature.id
            for hit in match_line(signature.example)
            if hit.signature.shows == signature.shows
        ]
        assert [
            hit.signature.id for hit in match_line(signature.example, frozenset({signature.shows}))
        ] == every
        assert signature.id in every


def test_rules_and_blanks_are_no_lines_of_words() -> None:
    words = "x" * 60 + " word and more wor"
    lines = ["=" * 90, " " * 85, *[words + "ds"[:1], "go on here"] * 6]
    assert wrap_width(lines) == wrap_width(lines[2:])
