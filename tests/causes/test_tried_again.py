"""A rank that sleeps between calls of a network call."""

from __future__ import annotations

import pytest

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import ALL_REDUCE, CELL, job, own, rank, total
from trainprobe.causes.collectives.rank_stuck import CAUSE as STUCK
from trainprobe.causes.scene import Scene
from trainprobe.causes.software.remote_service_wait import CAUSE as SERVICE
from trainprobe.facts import SourceSite


def scene_of(tries: str) -> Scene:
    site = SourceSite(
        ("E2",), CELL, None, "/job/train.py", 32, "post", "time.sleep(2)", tries=tries
    )
    asleep = rank(0, own("post", 32), own("post", 32), wchan="hrtimer_nanosleep")
    return live_rows.scene_of(job(2), asleep, rank(1, ALL_REDUCE, ALL_REDUCE), [site])


@pytest.mark.parametrize(
    "tries",
    [
        "urllib.request.urlopen; json.load",
        "self.session.post",
        "requests.get",
        "bucket.upload_file",
    ],
)
def test_the_service_is_what_it_waits_for(tries: str) -> None:
    scene = scene_of(f"log.info; {tries}")

    assert total(SERVICE, scene) > total(STUCK, scene)
    assert f"between calls of {tries.split(';', maxsplit=1)[0]}" in SERVICE.summary(scene)


@pytest.mark.parametrize("tries", ["os.path.exists; log.info", "queue.get_nowait", ""])
def test_a_loop_that_tries_something_else_waits_for_no_service(tries: str) -> None:
    scene = scene_of(tries)

    assert total(SERVICE, scene) == 0
    assert total(STUCK, scene) > 0
