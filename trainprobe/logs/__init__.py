"""Reads what a job has left: any mix of logs, dumps and error files becomes one case of extracts
and pointers.

`finding` lists the files, `gathering` reads them. Neither is imported here: judging a saved case
does not load the reader.
"""
