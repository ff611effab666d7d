"""Fit a line by gradient descent in plain Python: torch is never imported."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

slope = 0.0
for step in range(args.steps):
    error = 0.0
    for x in range(10):
        error += (slope * x - 3 * x) * x
    slope -= 0.001 * error
    if step % 10 == 0:
        print(f"step {step} slope {slope:.4f}")
