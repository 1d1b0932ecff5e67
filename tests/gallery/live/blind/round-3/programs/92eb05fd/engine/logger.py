import logging
import sys

from .metrics import EventHandler


def setup_logger(rank, store=None):
    root = logging.getLogger()
    root.setLevel(logging.INFO if rank == 0 else logging.WARNING)
    h = logging.StreamHandler(sys.stdout)
    h.setFormatter(logging.Formatter("[%(asctime)s %(name)s]: %(message)s", "%m/%d %H:%M:%S"))
    root.addHandler(h)
    if store is not None:
        root.addHandler(EventHandler(store))
