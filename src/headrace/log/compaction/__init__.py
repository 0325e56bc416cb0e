"""Compaction: a log that keeps the last record of each key, rewritten beside the loop and swapped in whole segments.

`plan` decides on the loop what may be cleaned; `cleaning` reads and writes files away from it and opens records;
`swap` puts the written files in the place of the old ones; `checkpoint` remembers how far each log is clean.
"""
