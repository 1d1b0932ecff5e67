"""Hosts as they are typed: names and ranges, and what can be the name of none."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets.host_names import host_names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("node1,node2", ("node1", "node2")),
        (" node2 ,node1,, node2,", ("node2", "node1")),
        ("node[1-3,7]", ("node1", "node2", "node3", "node7")),
        (
            "gpu[08-10]-ib.cluster,me@login",
            ("gpu08-ib.cluster", "gpu09-ib.cluster", "gpu10-ib.cluster", "me@login"),
        ),
        ("r[1-2]n[1,3]", ("r1n1", "r1n3", "r2n1", "r2n3")),
        ("10.0.0.1,fe80::1", ("10.0.0.1", "fe80::1")),
        ("node[1-5/2]", ("node1", "node3", "node5")),
        ("node[1-4]!node[2-3],x!node4", ("node1",)),
    ],
)
def test_names_and_ranges_are_listed_once_and_in_order(given: str, names: tuple[str, ...]) -> None:
    assert host_names("--hosts", given) == names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "names no host"),
        (",,", "names no host"),
        ("-oProxyCommand=reboot", "is no name of a host"),
        ("node1;reboot", "is no name of a host"),
        ("$(reboot)", "is no name of a host"),
        ("node 1", "is no name of a host"),
        ("node[1-3", "a bracket without its other one"),
        ("node1]", "a bracket without its other one"),
        ("node[a-c]", "is no range of numbers"),
        ("node[3-1]", "is no range of numbers"),
        ("node[1-3/0]", "is no range of numbers"),
        ("node1!node1", "leaves no host"),
        ("node1!", "names no host"),
        ("node[1-999999999]", "is no range of numbers"),
        ("r[1-4000]n[1-4000]", "more than 4096 hosts"),
    ],
)
def test_what_names_no_host_is_refused_with_the_way_to_write_it(given: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        host_names("--hosts", given)
    assert (words in raised.value.says, raised.value.do != "") == (True, True)


NODESET = """#!/bin/sh
[ "$1 $2 $3 $4" = "-e -S , --" ] || exit 9
case "$5" in
  @gpu) echo node1,node2,node3 ;;
  @drained) echo node2 ;;
  "@gpu!@drained,login") echo node1,node3,login ;;
  @none) ;;
  *) echo "nodeset: no such group source" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluset").write_text(NODESET)
    (tmp_path / "cluset").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr("shutil.which", {"cluset": "cluset"}.get)


@pytest.mark.usefixtures("groups")
def test_a_set_with_groups_is_clustershells_to_tell() -> None:
    assert host_names("--nodes", "@gpu!@drained,login") == ("node1", "node3", "login")
    assert host_names("--nodes", "me@login") == ("me@login",)


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("@none", "cluset knows no host of '@none'"),
        ("@gpu,@none", "cluset knows no host of '@none'"),
        ("@x:gpu", "cluset cannot tell '@x:gpu': nodeset: no such group source"),
        ("@gpu;reboot", "is no name of a host"),
        ("node1,@$(reboot)", "is no name of a host"),
    ],
)
def test_a_group_that_cannot_be_told_is_refused(given: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        host_names("--nodes", given)
    assert words in raised.value.says


def test_a_group_without_clustershell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UsageError) as raised:
        host_names("--nodes", "@gpu")
    assert "ClusterShell's nodeset is not on this machine" in raised.value.says
