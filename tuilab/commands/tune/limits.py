"""The numbers that decide how a tuning spends its budget.

study                       at most STUDY_SHARE: watch the script, then one process a treatment
comparison                  what is left, without the part that is kept for the combination
combination                 at most COMBINATION_SHARE, if there are several winners
"""

BASE = "base"  # the arm that is the unchanged script
WATCH = "watch"  # the label of the process in which the script is watched

STUDY_SHARE = 0.4  # of the budget
COMBINATION_SHARE = 0.25
WATCH_SHARE = 1 / 6  # of the budget, for the process that watches the script
LEAST_WATCH_S = 30.0

WATCHED_STEPS = 60
LEAST_STEPS = 8  # fewer steps cannot be timed
# The other processes make as many steps as take so long, but at least and at most so many.
MEASURED_S = 3.0
STEP_LIMITS = (30, 200)

# A process may take so many times as long as that of the unchanged script, and then so much longer:
# seconds, but at most a share of the budget.
OVERTIME_FACTOR = 2.0
OVERTIME_S = 60.0
OVERTIME_SHARE = 0.1
# A treatment whose only process was slower than this, as a ratio to the base, is not compared.
SLOWEST = 0.9
LEAST_ROUNDS = 6  # fewer repeats decide nothing
# By so much of the budget it may be exceeded, if LEAST_ROUNDS are nearly reached.
OVERRUN_SHARE = 0.1
