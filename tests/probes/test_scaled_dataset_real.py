"""Data as users have it, through the rung: the libraries are not the tool's, so these run where
they are installed. Seconds of imports for each child.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.conftest import RunProbe

pytestmark = pytest.mark.soak
OBJECTS = Path(__file__).parent / "data" / "real_objects.py"
FAULTY = Path(__file__).parent / "data" / "faulty.py"
ENV = {"TRAINPROBE_DEADLINE_S": "85", "TRAINPROBE_NPROC": "2"}


@pytest.mark.parametrize(
    ("library", "name", "kind"),
    [
        ("datasets", "hugging_face", "train (Dataset, map)"),
        ("datasets", "hugging_face_splits", "train (Dataset, map), test (Dataset, map)"),
        ("datasets", "hugging_face_stream", "train (IterableDataset, stream)"),
        ("lightning", "data_module", "train (DataLoader, loader), val0 (DataLoader, loader)"),
        ("webdataset", "tars", "train (WebDataset, stream)"),
        ("torch", "stream", "train (Stream, stream)"),
    ],
)
def test_real_objects_load_right(library: str, name: str, kind: str, run_probe: RunProbe) -> None:
    pytest.importorskip(library)
    done = run_probe(
        "scaled_dataset",
        "--dataset",
        f"{OBJECTS}:{name}",
        "--rows",
        "2,80",
        "--workers",
        "0,2",
        env=ENV,
    )
    assert done.answer == "yes", done.output
    assert kind in done.of("note", check="data.given")[0]["says"]
    digests = {one["where"]: one["value"] for one in done.of("measure", name="dataset.digest")}
    assert len(set(digests.values())) == 1
    assert done.of("measure", name="pss", workers=2)
    assert done.of("measure", name="workers.safe")[0]["value"] >= 1


@pytest.mark.parametrize(
    ("name", "kind"), [("stream_read_by_all", "overlap"), ("stream_uneven", "uneven")]
)
def test_streams_that_are_split_wrongly(name: str, kind: str, run_probe: RunProbe) -> None:
    pytest.importorskip("torch")
    workers = "0" if kind == "uneven" else "0,2"
    done = run_probe(
        "scaled_dataset",
        "--dataset",
        f"{OBJECTS}:{name}",
        "--rows",
        "2,80",
        "--workers",
        workers,
        env=ENV,
    )
    assert done.answer == "no", done.output
    assert [one["kind"] for one in done.of("fail")] == [kind]


def test_rows_that_are_lost_on_the_way_to_a_spawned_worker(run_probe: RunProbe) -> None:
    pytest.importorskip("torch")
    done = run_probe(
        "scaled_dataset",
        "--dataset",
        f"{FAULTY}:halved",
        "--rows",
        "2,20",
        "--workers",
        "0",
        env={**ENV, "TRAINPROBE_NPROC": "1"},
    )
    lengths = {one["where"]: one["value"] for one in done.of("measure", name="dataset.length")}
    assert lengths == {"parent": 100, "pickled": 50, "worker": 100, "worker-spawn": 50}
