"""Real clusters on one machine: hosts in namespaces of their own, with sshd and SLURM."""
