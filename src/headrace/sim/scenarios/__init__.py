"""What is played in a run: which settings, topics and clients a seed may draw, and what is looked at beyond them."""
