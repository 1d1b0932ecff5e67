"""What the check programs of readiness share: the table of checks, places below another root, and looks in a forked child."""
