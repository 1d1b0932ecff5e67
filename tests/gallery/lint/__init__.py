"""Programs with planted faults, and sound ones that look alike."""
