"""Look at a running job: find it, look at it in rounds, leave it as it was."""

from trainprobe.attach.discovery import find_target
from trainprobe.attach.visit import look_at_job, look_deeper
from trainprobe.system.interruption import Interrupted

__all__ = ["Interrupted", "find_target", "look_at_job", "look_deeper"]
