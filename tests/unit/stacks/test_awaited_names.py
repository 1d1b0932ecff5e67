"""What a waiting line asks for."""

from __future__ import annotations

import pytest

from trainprobe.stacks.awaited_names import asked_path, names_in

VALUES = {"root": "/data", "step": 12, "self.folder": "/tmp/job", "flag": True}


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (
            ("while not os.path.exists(self.path(step, holder)):",),
            ("os", "self.path", "step", "holder", "self"),
        ),
        (("while True:", "if done(flag):"), ("done", "flag")),
        (("time.sleep(0.1)",), ("time",)),
        (("while (", "x ="), ()),
    ],
)
def test_the_names_of_a_line(texts: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert set(names_in(texts)) == set(names)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('while not os.path.exists(f"{root}/step-{step}"):', "/data/step-12"),
        ("if os.path.isfile(os.path.join(root, 'done')):", "/data/done"),
        ("while not (Path(root) / 'done').exists():", "/data/done"),
        ("while not os.path.exists(self.folder + '/x'):", "/tmp/job/x"),
        ("with open('/data/fifo') as pipe:", "/data/fifo"),
        ("while not os.path.exists(self.path(step)):", None),
        ('while not os.path.exists(f"{root}/{step:05d}"):', None),
        ("while not os.path.exists(step):", None),
        ("while not ready(root):", None),
    ],
)
def test_the_path_that_a_line_asks_for(line: str, path: str | None) -> None:
    assert asked_path(line, VALUES) == path
