"""Situations over nodes in which sites once got a wrong answer, made afresh on real parts and
asked again.
"""

from pathlib import Path

from tests.gallery.nodes.once_wrong.jobs import JOBS
from tests.gallery.nodes.once_wrong.nodes import NODES
from tests.gallery.nodes.once_wrong.slots import SLOTS
from tests.gallery.nodes.once_wrong.texts import TEXTS

RESULTS = Path(__file__).with_name("results.json")
EVERY = (*JOBS, *TEXTS, *NODES, *SLOTS)
