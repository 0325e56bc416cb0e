"""Compaction: keep the last record of each key, by rewriting whole segments outside the loop and swapping them in.

`plan` decides on the loop which segments may be cleaned; `cleaner` decodes records and writes cleaned files outside the
loop; `swap` replaces the old segments with the cleaned files; `checkpoint` stores the offset up to which each log is
clean.
"""
