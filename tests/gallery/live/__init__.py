"""Live broken and healthy jobs for `trainprobe attach`, with known causes."""
