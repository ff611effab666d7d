"""The journal: what a run leaves on disk, and the only thing that views know of it.

One append-only stream per writing process. One record = one line = one `write(2)` on an O_APPEND descriptor:

    crc32-hex SP compact-JSON LF

A kill of anything at any time loses nothing that was written. A line cut short is repaired by the next one, which begins
with a line feed. Non-finite floats travel as "nan", "inf", "-inf" and come back as floats.
"""
