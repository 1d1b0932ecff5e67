"""Parts of node_pair.py."""
