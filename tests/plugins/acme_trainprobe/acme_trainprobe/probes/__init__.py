"""The folder of our probes. Its modules are programs: trainprobe reads their headers and runs
them, and imports none.
"""
