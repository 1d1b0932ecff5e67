"""One line for a framework's trainer, so that each of its steps is a `trainprobe.step`.

Each module belongs to one framework and is imported by the job alone, in its own Python.
"""
