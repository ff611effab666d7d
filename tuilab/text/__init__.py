"""Text for people: safe to display, with units, wrapped to a width, in a language."""
