"""Decides every change of the cluster's metadata, and holds what those changes add up to.

The controller turns a command into records and a response; the image is what the records add up to. Nothing else
changes metadata, so a replay of the log and the live path end in the same state.
"""
