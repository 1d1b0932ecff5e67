"""What fork_safety starts: the process that imports, builds and forks, what it looks at, and what its children try."""
