"""Plan a tuning: which treatments apply to a script, what each can gain, and how to write each.

All functions are pure: facts about the script, its steps and the machine become records. Only
`machine.py` and `sources.py` read files.
"""
