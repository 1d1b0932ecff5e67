"""A small tool: makes a case, starts a torchrun-like job under a keeper, and says at which moment
it is.

`uses_a_keeper.py FOLDER MOMENT`: it announces MOMENT when it gets there; the test kills it then.
"""

import os
import sys
import threading

from announce import announce

from trainprobe.case import Case
from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.run import run

folder, moment = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
output = os.path.join(folder, "output")


def at(name: str) -> None:
    if name == moment:
        announce(name)


case = Case.create(os.path.join(folder, "case"), "diagnose", sys.argv)
case.add("plan", data={"nproc": 2})
if moment == "looking":
    threading.Timer(0.2, at, ["looking"]).start()
    run([sys.executable, os.path.join(here, "sleeps_for_ever.py")], timeout_s=100)
keeper = Keeper(folder)
at("keeper-made")
programs = {
    "launcher": ["launches_like_torchrun.py", "2"],
    "deaf": ["ignores_sigterm.py"],
    "daemon": ["becomes_a_daemon.py"],
}
specs = [
    ChildSpec(
        key,
        (sys.executable, os.path.join(here, argv[0]), *argv[1:]),
        dict(os.environ),
        folder,
        output,
        output,
    )
    for key, argv in programs.items()
]
if moment == "starting":
    threading.Thread(target=at, args=["starting"]).start()
keeper.start(specs)
case.add("plan", data={"pids": [child.pid for child in keeper.children.values()]})
at("started")
while moment != "stopping":
    keeper.wait(1)
    case.add("process", data={"alive": keeper.alive_pids()})
threading.Timer(0.3, at, ["stopping"]).start()
keeper.stop(grace_s=60)
