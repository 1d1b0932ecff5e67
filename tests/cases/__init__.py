"""Golden cases: saved, scrubbed runs of the real tool, each with the report that it must give."""
