"""What our site adds to trainprobe."""
