"""Reading what is left of a job: any mix of logs, dumps and error files becomes one case of extracts and pointers.

`finding` knows what was named, `gathering` reads it. Neither is imported here: a saved case is judged without loading the reader.
"""
