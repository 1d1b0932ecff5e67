"""Causes in the input pipeline: samples, loader workers, descriptors, shared memory."""
