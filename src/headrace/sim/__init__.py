"""The virtual world: clock, network, disk and helpers that a whole node runs on, repeatable by seed."""
