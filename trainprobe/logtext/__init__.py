"""Reading single lines of logs: what they say without decoration, who says it, when, how far the training was, and which attempt it belongs to."""
