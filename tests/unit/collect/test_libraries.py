"""Which libraries the ranks have loaded, and what their packages say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.collect import libraries_child
from trainprobe.collect.collector import JobView
from trainprobe.collect.collectors import libraries
from trainprobe.collect.collectors.libraries import RankLibraries
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence

ROW = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 {inode}  {path}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with torch and NCCL in it."""
    found = tmp_path / "site-packages"
    for folder in ("torch/lib", "nvidia/nccl/lib", "nvidia_nccl_cu12-2.27.3.dist-info"):
        (found / folder).mkdir(parents=True)
    (found / "torch/version.py").write_text("__all__ = []\n__version__ = '2.8.0+cu126'\n")
    for name in ("torch/lib/libtorch_cpu.so", "nvidia/nccl/lib/libnccl.so.2"):
        (found / name).touch()
    return found


def proc(folder: Path, pid: int, *paths: object) -> str:
    own = folder / "proc" / str(pid)
    (own / "task" / str(pid)).mkdir(parents=True)
    (own / "net").mkdir()
    (own / "root").symlink_to("/")
    (own / "maps").write_text("".join(ROW.format(inode=1, path=path) for path in paths))
    (own / "task" / str(pid) / "comm").write_text("pt_nccl_watchdg\n")
    (own / "net" / "dev").write_text("Inter-| x\n face | x\n    lo: 1 2\n  eth0: 1 2\n")
    return str(folder / "proc")


def test_what_a_rank_has_loaded_is_told_with_its_version(tmp_path: Path, site: Path) -> None:
    torch, nccl = site / "torch/lib/libtorch_cpu.so", site / "nvidia/nccl/lib/libnccl.so.2"
    at = proc(tmp_path, 7, "/usr/lib/libpython3.11.so.1.0", torch, nccl)

    result = libraries.look(JobView([Member(3, 7)], {"nnodes": 2}), 5.0, at)

    (fact,) = libraries.parse(Evidence("E1", "libraries", data=dict(result.data)))
    assert isinstance(fact, RankLibraries)
    assert (fact.rank, fact.python, fact.torch_version, fact.nccl_version, fact.backend) == (
        *(3, "3.11", "2.8.0+cu126"),
        *("2.27.3", "nccl"),
    )
    assert fact.interfaces == ("lo", "eth0")


def test_versions_are_read_where_there_is_something_to_compare(tmp_path: Path, site: Path) -> None:
    at = proc(tmp_path, 7, site / "torch/lib/libtorch_cpu.so")

    assert "versions" not in libraries.look(JobView([Member(0, 7)], {}), 1.0, at).data
    assert libraries.look(JobView([Member(0, 8)], {}), 1.0, at).outcome == "unavailable"


def test_a_library_of_the_system_tells_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "libnccl.so.2.21.5").touch()
    (tmp_path / "libnccl.so.2").symlink_to("libnccl.so.2.21.5")

    assert libraries_child.version(str(tmp_path / "libnccl.so.2")) == "2.21.5"
