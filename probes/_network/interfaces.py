"""The interfaces of this host with their addresses, and which of them NCCL and gloo will take.

NCCL's rules (ncclFindInterfaces of 2.30.7): NCCL_SOCKET_IFNAME holds prefixes, `^` leaves out, `=`
asks for whole names; without it interfaces that begin with ib, then all but docker, lo and virbr,
then docker, lo, virbr. It takes those that run and have an address. Gloo takes the first interface
of GLOO_SOCKET_IFNAME, a list of whole names, else the address that this host's own name resolves
to, else the loopback.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
from typing import Dict, List, NamedTuple, Optional, Tuple

from _shared import kernel_files

UP, LOOPBACK, RUNNING = 0x1, 0x8, 0x40  # IFF_*, linux/if.h
AUTOMATIC = ("ib", "^docker,lo,virbr", "docker", "lo", "virbr")


class Interface(NamedTuple):
    """One address of an interface; `network` is like 10.0.0.0/24."""

    name: str
    address: str
    network: str
    flags: int


class _SockAddr(ctypes.Structure):
    _fields_ = (("family", ctypes.c_ushort), ("data", ctypes.c_ubyte * 26))


class _IfAddrs(ctypes.Structure):
    pass


_IfAddrs._fields_ = (
    ("next", ctypes.POINTER(_IfAddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_SockAddr)),
    ("mask", ctypes.POINTER(_SockAddr)),
    ("other", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
)


def interfaces() -> List[Interface]:
    """IPv4 and IPv6 addresses in the kernel's order, in which the libraries look."""
    library = ctypes.CDLL(None, use_errno=True)
    first = ctypes.POINTER(_IfAddrs)()
    if library.getifaddrs(ctypes.byref(first)) != 0:
        raise OSError(ctypes.get_errno(), "getifaddrs")
    found = []
    try:
        row = first
        while bool(row):
            item = row.contents
            address = _bytes(item.address)
            if address:
                mask = _bytes(item.mask) or b"\xff" * len(address)
                bits = bin(int.from_bytes(mask, "big")).count("1")
                host = ipaddress.ip_address(address)
                network = ipaddress.ip_network(f"{host}/{bits}", strict=False)
                found.append(Interface(os.fsdecode(item.name), str(host), str(network), item.flags))
            row = item.next
    finally:
        library.freeifaddrs(first)
    return found


def _bytes(pointer: ctypes._Pointer[_SockAddr]) -> bytes:
    if not bool(pointer):
        return b""
    data = bytes(pointer.contents.data)
    return {socket.AF_INET: data[2:6], socket.AF_INET6: data[6:22]}.get(
        pointer.contents.family, b""
    )


def names(root: str) -> Dict[str, str]:
    """All interfaces, those without an address too: name to operstate."""
    return {
        os.path.basename(path): kernel_files.line(root, f"{path}/operstate")
        for path in kernel_files.matching(root, "/sys/class/net/*")
    }


def matching(rule: str, rows: List[Interface], family: str = "") -> List[Interface]:
    """What NCCL's rule allows of them, in their order, each name once; without IPv6's loopback."""
    leaves_out, rule = rule.startswith("^"), rule.removeprefix("^")
    whole, rule = rule.startswith("="), rule.removeprefix("=")
    wanted = [part.partition(":")[0] for part in rule.split(",") if part.partition(":")[0]]
    found: Dict[str, Interface] = {}
    for item in rows:
        version = ipaddress.ip_address(item.address).version
        fits = not wanted or any(
            item.name == prefix if whole else item.name.startswith(prefix) for prefix in wanted
        )
        other_family = version != {"AF_INET": 4, "AF_INET6": 6}.get(family, version)
        if (
            item.flags & RUNNING
            and fits != leaves_out
            and not other_family
            and not (version == 6 and item.flags & LOOPBACK)
        ):
            found.setdefault(item.name, item)
    return list(found.values())


def nccl(rows: List[Interface], environment: Dict[str, str]) -> Tuple[List[Interface], str]:
    """(what NCCL takes, the rule that chose)."""
    setting = environment.get("NCCL_SOCKET_IFNAME", "")
    family = environment.get("NCCL_SOCKET_FAMILY", "")
    for rule in (setting,) if len(setting) > 1 else AUTOMATIC:
        found = matching(rule, rows, family)
        if found:
            return found, rule
    return [], setting


def gloo(rows: List[Interface], environment: Dict[str, str], own: List[str]) -> Optional[Interface]:
    """What gloo takes among `own`, the addresses of this host's name; None where it takes none."""
    setting = [name for name in environment.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    if setting:
        return next((item for item in rows if item.name == setting[0]), None)
    named = next((item for address in own for item in rows if item.address == address), None)
    return named or next((item for item in rows if item.address == "127.0.0.1"), None)


def useful(rows: List[Interface]) -> List[Interface]:
    """Those that another host could reach: for the advice."""
    return [
        item
        for item in matching("^docker,lo,virbr,veth,cni,flannel", rows)
        if not ipaddress.ip_address(item.address).is_link_local
    ]
