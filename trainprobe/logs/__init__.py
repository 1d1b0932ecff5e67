"""Reading what is left of a job: any mix of logs, dumps and error files becomes one case of extracts and pointers."""

from trainprobe.logs.finding import Found, find_inputs
from trainprobe.logs.gathering import gather

__all__ = ["Found", "find_inputs", "gather"]
