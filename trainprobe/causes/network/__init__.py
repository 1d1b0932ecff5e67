"""Causes in start-up: launcher, ports, devices handed to ranks."""
