"""The terminal under the screens: what is drawn when, which keys came, and giving it back.

Imports the shared modules, and no other part of `tui`.
"""
