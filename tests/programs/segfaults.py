"""Reads from a null pointer."""

import ctypes
import resource

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
ctypes.string_at(0)
