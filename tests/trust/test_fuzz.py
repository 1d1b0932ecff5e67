"""A short run of the changed inputs (`make fuzz` is the long one), and what longer ones found."""

from __future__ import annotations

import pytest

from tests.trust.fuzz import fuzz, once
from tests.trust.readers import READERS
from trainprobe.redact import Redactor

MANIFEST = """
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - {{name: c, image: x, command: {command}, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}
"""
FOUND = [
    ("proc schedstat", "12 45² 7\n"),
    ("proc schedstat", f"12 {'4' * 5000} 7\n"),
    ("ras json", '{"job_summary": {}, "communicators": [{"ranks": true}]}'),
    ("manifest", MANIFEST.format(command=3)),
    ("interfaces", "\n\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 1² 15 16\n"),
    ("secrets", "." * 30),
    ("kmsg", f"6,123,{'4' * 400},-;x\n"),
    ("numbers", "1n:\x1c4"),
]


def test_readers_survive_what_is_right() -> None:
    failed = [once(reader, seed) for reader in READERS for seed in reader.seeds]
    assert [each for each in failed if each is not None] == []


def test_readers_survive_changed_inputs() -> None:
    counts, failures = fuzz([each for each in READERS if each.at_once > 1], 7, None, 100)
    assert failures == []
    assert min(counts.values()) >= 100


@pytest.mark.parametrize(("name", "text"), FOUND)
def test_inputs_that_once_failed(name: str, text: str) -> None:
    (reader,) = (each for each in READERS if each.name == name)
    assert once(reader, text) is None


def test_a_value_of_full_stops_is_no_secret() -> None:
    assert Redactor({}).data({"shown": "." * 30}) == ({"shown": "." * 30}, 0)
