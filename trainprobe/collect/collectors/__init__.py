"""The collectors: one file for each kind of look, found by `collect.collector.built`."""
