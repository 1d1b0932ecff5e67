"""Causes in how processes start, import, are limited, stop and die."""
