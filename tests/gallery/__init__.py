"""Live broken jobs with known causes, and healthy ones that must not be blamed."""
