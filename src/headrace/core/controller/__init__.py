"""The controller decides every change of the cluster's metadata; the image holds the resulting state.

The controller turns a command into records and a response; the image is the result of applying the records. Nothing
else changes metadata, so a replay of the log and the live path end in the same state.
"""
