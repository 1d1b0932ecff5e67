"""The model's stress test: what is stressed (subject, batches), who runs a suite (children), what it writes (look), and the suites, one file each."""
