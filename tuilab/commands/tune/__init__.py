"""`tuilab tune`: try training advice on a script of the user, without changing it.

A treatment is one change to a training, such as two DataLoader workers. The process that runs the
script applies it (`tuilab/commands/watcher/_tuilab_treat/`). A tuning watches the script once,
plans which treatments to try, tries each of them in one process, compares the promising ones with
the unchanged script, and compares the combination of the winners.
"""
