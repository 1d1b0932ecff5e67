"""A real sshd on each host, and the ssh_config that reaches them by name."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster.hosts import Host

SSHD = "/usr/sbin/sshd"
CONF = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/%s.pid
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
MaxStartups 100
Subsystem sftp internal-sftp
"""
CLIENT = """
Host node*
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
{names}
"""


def why_not() -> str:
    """The reason why sshd cannot run here, empty where it can."""
    missing = [
        name
        for name, path in (
            ("ssh", shutil.which("ssh")),
            ("ssh-keygen", shutil.which("ssh-keygen")),
            ("sshd", shutil.which(SSHD)),
        )
        if not path
    ]
    return f"{', '.join(missing)} not installed (openssh-client openssh-server)" if missing else ""


@contextlib.contextmanager
def sshd(nodes: Sequence[Host], folder: Path) -> Iterator[Path]:
    """Start sshd on each host and give the client's configuration, for `ssh -F`; the daemons end
    with their hosts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for key in ("host_key", "user_key"):
        (folder / key).unlink(missing_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)],
            check=True,
            timeout=20,
        )
    for host in nodes:
        conf = folder / f"sshd_config-{host.name}"
        conf.write_text(CONF.format(folder=folder) % host.name, encoding="utf-8")
        host.start(SSHD, "-D", "-e", "-f", str(conf), log="sshd.out")
    client = folder / "ssh_config"
    names = "".join(f"Host {host.name}\n  HostName {host.address}\n" for host in nodes)
    client.write_text(CLIENT.format(folder=folder, names=names), encoding="utf-8")
    for host in nodes:
        _wait(host)
    yield client


def _wait(host: Host) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            with socket.create_connection((host.address, 22), 1):
                return
        except OSError:
            if time.monotonic() > until:
                raise RuntimeError(
                    f"sshd of {host.name} does not answer:"
                    f" {(host.folder / 'sshd.out').read_text()[:300]}"
                ) from None
            time.sleep(0.05)
