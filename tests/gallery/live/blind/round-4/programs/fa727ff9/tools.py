import ctypes
import logging
import signal


def configure():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")


def tie_to_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
