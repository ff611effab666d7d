"""What a run leaves behind and what it amounts to: records, the files they are kept in, and their summary.

Imports only the shared modules: errors, text, storage, scrub and the like.
"""
