"""The long runs of `make chaos`: what they are, what was reached, and the page that tells it."""
