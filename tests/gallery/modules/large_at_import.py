"""A module that builds a table of some hundred MiB while it is imported."""

import os
import time

TABLE_MIB = int(os.environ.get("TABLE_MIB", "300"))
TABLE = b"\x01" * (TABLE_MIB << 20)
time.sleep(0.5)
