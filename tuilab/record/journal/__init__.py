"""The journal: the files that a run leaves on disk, and the only thing that views read of it.

One append-only stream per writing process. One record = one line = one `write(2)` on an O_APPEND
descriptor:

    crc32-hex SP compact-JSON LF

No kill of any process at any time loses a record that was written. A line that was cut short is
repaired by the next one, which begins with a line feed. Non-finite floats are stored as "nan",
"inf" and "-inf", and are read as floats again.
"""
