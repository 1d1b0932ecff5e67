"""Reads single lines of logs: the plain text, its writer, its time, the progress of the training,
and the attempt that it belongs to.
"""
