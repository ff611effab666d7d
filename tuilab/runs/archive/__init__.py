"""A run as one file: packed on one box, unpacked on another without trusting a byte of it.

An archive is a tar in gzip with the folder of one run.
"""
