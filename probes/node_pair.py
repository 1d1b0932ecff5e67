"""One member of a small group of nodes that try each other: do they reach each other, how fast, and
what gets lost on the way?

It is no rung of the ladder: whoever looks for a bad node starts it on two nodes, or three, at the
same time, and puts together what they say. No member says which of them is at fault; it tells what
it saw from its side.

TRAINPROBE_PAIR holds JSON: {"me", "members": [{"name", "address"}], "ports", "datagrams", "token",
"arm", "meet_s", "end_s", "paths"}, and for the arms of torch "meeting_port" and "local_rank". Into
each folder of "paths" it writes a small file, looks for those of the others, and removes it. An
empty address is looked up by the member's name, as torch would
do it.
Arm tcp (standard library only): connections both ways on all ports, round trips, a series of 1000
datagrams each way, some throughput.
Arms gloo and nccl: torch's group of the members, and sums that are known beforehand.
By hand, on two hosts:  TRAINPROBE_PAIR='{"me": "a", "members": [{"name": "a"}, {"name": "b"}],
"ports": [23456], "datagrams": 23456, "token": "x"}' python probes/node_pair.py
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _node_pair import collective, exchange, members


def main() -> None:
    request = members.read_request()
    try:
        if request.arm == "tcp":
            exchange.talk(request)
        collective.reduce_together(request)
    except OSError as error:
        _emit.fail_exception(f"{request.me} could not take part", error)
        _emit.result(
            "cannot", f"{request.me} could not take part: {error.strerror or error}.", at_once=True
        )


if __name__ == "__main__":
    main()
