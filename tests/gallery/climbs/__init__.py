"""Real training programs that fail from some size or number of ranks on, climbed by the public
command.
"""
