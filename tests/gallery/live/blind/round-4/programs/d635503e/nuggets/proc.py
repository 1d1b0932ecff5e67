import ctypes
import signal


def tie_to_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
