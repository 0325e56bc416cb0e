"""The names of things: what every other package says aloud. Imports nothing of Headrace but itself."""
