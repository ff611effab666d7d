"""A run as one file: packed on one machine, and unpacked on another without trusting a byte of it.

An archive is a gzipped tar file with the folder of one run.
"""
