"""A node's network works, and is far worse than that of the others.

A cable or a port with errors loses packets, a route leads through a tunnel or another site, a card
runs at a tenth of its rate. TCP hides it: everything arrives, seconds later. In a synchronous job
each collective waits for the slowest link, so that all ranks crawl; some hit a timeout.

It is recognised by small real traffic between pairs of nodes: round trips, segments that are sent
again, and bytes a second, beside those of the other pairs, with partners that are good with others.
A way that does not work at all is `firewall-or-route`.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody

CAUSE = Cause(
    id="link-degraded",
    title="A node's network loses packets or is slow",
    would_settle=(
        "ping -c 100 -i 0.2 NODE and iperf3 between that node and two others; ethtool -S and ip -s"
        " link there"
    ),
    accounts_for=("network-fault",),
    modes=("check",),
    ranks=nobody,
    ready=ReadySigns(
        says=("has a network worse than the others", "have a link worse than the others"),
        checks=("net.mtu",),
        hows=("loss", "delay", "slow"),
        admin=(
            (
                "ip -s link; ethtool -S eth0 | grep -iE 'err|drop|crc'; ethtool eth0   (rate and"
                " duplex)"
            ),
            "look at the cable, the transceiver and the switch port",
        ),
    ),
)
