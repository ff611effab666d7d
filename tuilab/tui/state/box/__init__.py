"""What the Box screen and those that it leads to know, and what they do beside the main path.

Imports the rooms before it, and nothing of the screens.
"""
