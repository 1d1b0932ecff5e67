"""trainprobe.yaml: what it may hold, and one sentence with file, line and key for everything
else.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.config import LARGEST_BYTES, Settings, read_settings, setting_rows, settings_of
from trainprobe.errors import UsageError

FULL = """\
nproc: 4
imports: [torch, numpy]
rungs:
  only: [host, user_script]
  skip: []
timeouts:
  total_s: 300
  first_output_s: 60.5
  stall_s: 20
  run_s: 30
  rungs: {gloo_control: 45}
thresholds:
  at_most: {init_s: 10}
  at_least: {single_gpu.matmul_gflops: 0.5}
"""


def test_everything_can_be_set() -> None:
    assert settings_of(FULL, "f") == Settings(
        nproc=4,
        imports=("torch", "numpy"),
        only=("host", "user_script"),
        skip=(),
        timeout_s=300.0,
        rung_timeouts_s={"gloo_control": 45.0},
        first_output_s=60.5,
        stall_s=20.0,
        run_s=30.0,
        at_most={"init_s": 10.0},
        at_least={"single_gpu.matmul_gflops": 0.5},
    )


@pytest.mark.parametrize(
    "text",
    ["", "# only a comment\n", "---\n", "~\n", "timeouts:\n", "nproc: null\nthresholds: ~\n"],
)
def test_nothing_said_means_the_defaults(text: str) -> None:
    assert settings_of(text, "f") == Settings()


def test_every_field_has_a_key_and_a_sentence() -> None:
    rows = setting_rows()
    assert len({row.key for row in rows}) == len(rows)
    assert all(row.says.endswith(".") for row in rows)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- a\n- b\n", 1, "name: value"),
        ("hello\n", 1, "name: value"),
        ("nproc: [1\n", 2, "not YAML"),
        ("a: b: c\n", 1, "not YAML"),
        ("\tnproc: 1\n", 1, "not YAML"),
        ("nprocs: 2\n", 1, "Did you mean nproc?"),
        ("nproc: 2\ntimeouts:\n  stal_s: 3\n", 3, "Did you mean timeouts.stall_s?"),
        ("stall_s: 3\n", 1, "Did you mean timeouts.stall_s?"),
        ("zebra: 3\n", 1, "There are: "),
        ("nproc: 2\nnproc: 3\n", 2, "second time"),
        ("nproc: four\n", 1, "whole number"),
        ("nproc: 0\n", 1, "whole number"),
        ("nproc: true\n", 1, "whole number"),
        ("nproc: 1000000000\n", 1, "whole number"),
        ("nproc: 2.5\n", 1, "whole number"),
        ("nproc: [2]\n", 1, "a list"),
        ("imports: torch\n", 1, "list of names"),
        ("imports:\n  - torch\n  - 3\n", 3, "needs names"),
        ("rungs: [host]\n", 1, "not a list"),
        ("timeouts:\n  stall_s: -1\n", 2, "seconds"),
        ("timeouts:\n  stall_s: .nan\n", 2, "seconds"),
        ("timeouts:\n  stall_s: .inf\n", 2, "seconds"),
        ("timeouts:\n  rungs: {host: soon}\n", 2, "timeouts.rungs.host"),
        ("timeouts:\n  rungs: {host: 1, host: 2}\n", 2, "twice"),
        ("thresholds:\n  at_most: {a: [1]}\n", 2, "number"),
        ("thresholds: 3\n", 1, "name: value"),
        ("thresholds: {at_most: 3}\n", 1, "name: number"),
        ("a: &x 1\nb: *x\n", 2, "aliases"),
        ("? [1]\n: 2\n", 1, "is no setting"),
        ("nproc: !!python/object/apply:os.system [ls]\n", 1, "whole number"),
        ("nproc: 1\n---\nnproc: 2\n", 2, "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings_of(text, "trainprobe.yaml")
    assert f"trainprobe.yaml, line {line}: " in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_deep_nesting_is_a_sentence_and_not_a_crash() -> None:
    with pytest.raises(UsageError):
        settings_of("[" * 30_000, "f")


@given(st.text(max_size=60))
def test_any_text_gives_settings_or_a_sentence(text: str) -> None:
    said = ""
    try:
        settings_of(text, "f")
    except UsageError as error:
        said = str(error)
    assert "\n" not in said


def test_the_file_of_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings() == Settings()
    (tmp_path / "trainprobe.yaml").write_text("nproc: 3\n")
    assert read_settings().nproc == 3


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    missing, folder, binary, huge = (
        tmp_path / "no.yaml",
        tmp_path,
        tmp_path / "b.yaml",
        tmp_path / "h.yaml",
    )
    binary.write_bytes(b"nproc: 1\n\xff\xfe\n")
    huge.write_bytes(b"#" * (LARGEST_BYTES + 1))
    for path, words in (
        (missing, "No such file"),
        (folder, "directory"),
        (binary, "line 2: this is not UTF-8"),
        (huge, "larger than 64 kB"),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            read_settings(str(path))
        assert str(path) in str(caught.value)


def test_the_witness_is_on_unless_it_is_switched_off() -> None:
    assert Settings().witness is True
    assert settings_of("witness: false\n", "trainprobe.yaml").witness is False
    with pytest.raises(UsageError, match="line 1: witness needs true or false"):
        settings_of("witness: 3\n", "trainprobe.yaml")
