"""What Acme adds to kgbench. `kgbench list` imports nothing of it."""
