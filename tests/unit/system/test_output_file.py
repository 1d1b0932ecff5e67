"""Output is cut in its middle, with holes and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainprobe.system.output_file import OutputFile

CAP = 64 * 1024


def lines(begin: int, end: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(begin, end))


@pytest.mark.parametrize("holes", [True, False])
def test_head_and_tail_stay_and_the_cut_is_counted(tmp_path: Path, holes: bool) -> None:
    path = tmp_path / "out"
    output = OutputFile(str(path), CAP)
    output.holes = holes
    cut = 0
    with path.open("ab", buffering=0) as writer:
        for block in range(100):
            writer.write(lines(block * 1000, (block + 1) * 1000))
            cut += output.look()[0]
            assert path.stat().st_blocks * 512 < 3 * CAP
    cut += output.settle()
    content = path.read_bytes()
    said = content[content.index(b"\n[") : content.index(b"here]\n") + 6]
    assert len(content) < CAP
    assert content.startswith(lines(0, 1000))
    assert content.endswith(lines(99_000, 100_000))
    assert said == b"\n[trainprobe: %d bytes cut here]\n" % cut
    assert content.count(b"cut here]") == 1
    assert cut + len(content) - len(said) == 800_000
    os.close(output.fd)


def test_with_holes_every_byte_keeps_its_place_until_it_settles(tmp_path: Path) -> None:
    path = tmp_path / "out"
    output = OutputFile(str(path), CAP)
    with path.open("ab", buffering=0) as writer:
        writer.write(lines(0, 100_000))
        output.look()
        if not output.holes:
            pytest.skip("this file system has no holes")
        assert path.stat().st_size == 800_000
        assert path.read_bytes()[-8000:] == lines(99_000, 100_000)
        writer.write(b"the end\n")
    output.settle()
    assert path.read_bytes().endswith(b"the end\n")
    assert output.settle() == 0, "settled is settled"
    os.close(output.fd)


def test_a_short_file_and_a_device_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * 1000)
    for path in (str(tmp_path / "short"), os.devnull):
        output = OutputFile(path, CAP)
        os.write(output.fd, b"y" * 1000)
        assert output.look() == (0, False)
        assert output.settle() == 0
        os.close(output.fd)
    assert (tmp_path / "short").read_bytes() == b"x" * 1000 + b"y" * 1000
