"""The front for blocking calls: real ports around the core, and a deadline on every wait."""
