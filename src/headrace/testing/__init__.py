"""A real broker inside your tests: the embedded broker and the pytest plugin."""
