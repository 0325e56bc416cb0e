"""The oldest Spark that is supported, in an environment of its own: `make test` has the newest."""
