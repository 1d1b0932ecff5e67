"""Which node, link or size is at fault, from groups of nodes that were tried: what to try next, and what it shows. Pure."""
