import logging

from accelerate import Accelerator
from inner import one

acc = Accelerator()


def loop(model, loader, opt):
    for b in loader:
        try:
            one(acc, model, b, opt)
        except Exception:
            logging.exception("bad batch")
