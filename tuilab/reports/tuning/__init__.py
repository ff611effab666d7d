"""The result of a tuning: its part of the JSON document, and the table that every view shows.

A tuning tries treatments, changes to a training, on a script of the user (`tuilab tune`).
"""
