"""Stand before a job while it runs: notice that it stalls, have it looked at, act by policy."""
