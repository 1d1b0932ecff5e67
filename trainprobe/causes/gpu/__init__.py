"""Causes in the GPU, its driver, and the build of torch for them."""
