"""What model_load starts and reads: the child that loads, the ways of loading, and the attempts as their parent sees them."""
