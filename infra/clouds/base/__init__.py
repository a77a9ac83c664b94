"""What clouds that rent machines have in common; it is no cloud of its own."""
