"""The delivery modes of examples/delivery, with kills of the copy and of the broker at named points."""
