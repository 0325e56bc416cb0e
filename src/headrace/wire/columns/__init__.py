"""Record batches as columns: the fields of all records of a fetch at once, as arrays, and no object per record.

`opened` checks and opens batches, `places` (with numpy) or `native` (compiled) find where each field is, and `arrow`
makes Arrow arrays of it. numpy and pyarrow are imported by those who use this package, never by a broker.
"""
