"""The ports on a real machine: imported only by composition roots."""
