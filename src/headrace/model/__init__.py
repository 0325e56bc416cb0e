"""The vocabulary that all other packages use. Imports nothing of Headrace but itself."""
