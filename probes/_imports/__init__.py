"""What import_memory starts and reads: the child that imports, what it watches meanwhile, and the attempts as their parent sees them."""
