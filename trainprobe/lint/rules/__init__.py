"""One file per source pattern, each with a `RULE`; found by their presence."""
