"""Record batches of format v2: the fixed header, the records inside, and the five compressions."""
