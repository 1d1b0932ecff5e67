"""The answer in words, colour and JSON. `text` is canonical: every other form says the same."""
