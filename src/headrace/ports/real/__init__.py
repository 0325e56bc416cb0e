"""The running system on a real machine: imported only by composition roots."""
