"""Small broken jobs that `trainprobe demo` starts, so that one can see an answer before one's own
job hangs.
"""
