"""The front for threads that wait: real ports around the core, and a deadline on every wait."""
