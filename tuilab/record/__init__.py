"""What a run leaves behind and what it amounts to: records, the files they are kept in, and their summary.

Imports the ground alone: errors, text, files and the like, which stand beside the rooms.
"""
