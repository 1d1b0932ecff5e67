"""The way to other nodes (srun, OpenSSH, kubectl) and back: commands, and lines of answers."""
