"""A module whose import starts a child of its own and does not come back."""

import subprocess
import sys
import time

subprocess.Popen(
    [
        sys.executable,
        "-c",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)",
    ],
    start_new_session=True,
)
time.sleep(1000)
