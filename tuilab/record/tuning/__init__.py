"""Read a tuning from the summary of its run: how far it is, and what each treatment has come to.

A tuning tries treatments, changes to a training, on a script of the user (`tuilab tune`).
"""
