"""Readiness of nodes: runs the check programs of each node, in processes that can be killed, and
writes down what they saw.
"""
