"""The suites, one file each: `run(subject, look)` tries, holds numbers against thresholds, and never judges which illness they show."""
