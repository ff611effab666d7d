"""The screens, one in each file; `page` is their base.

This package may import the widgets and everything below them.
"""
