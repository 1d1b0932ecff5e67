"""The way to other nodes and back: commands that run there by srun, OpenSSH or kubectl, and the
lines that they send home.
"""
