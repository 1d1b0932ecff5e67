import ctypes
import signal


def tie_to_parent(*_):
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
