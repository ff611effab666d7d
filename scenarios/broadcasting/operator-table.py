"""Use ^ and ~ for bits only, and torch.logical_and and the like for truth.

Each operator of Python calls a function of torch: `x + y` is `torch.add(x, y)`, and `x[1:3]` is
`torch.narrow(x, 0, 1, 2)`. The source lists them, and most of the list holds. The table of this
lesson runs every row.

`&`, `|`, `^` and `~` work on bits. A bool has one bit, so for bools they are the logical functions
that the list names. For integers they are not: ~6 is -7, while `torch.logical_not` returns False.
Floats have no such operators. Division rounds down: -7 // 2 is -4, and the remainder has the sign
of the divisor, as in Python. `fmod` and C round towards 0.

A class cannot redefine `and`, `or`, `not` and a chain like 1 < x < 2. Python asks the tensor for
one truth value, and a tensor of several numbers has none. `&` binds more strongly than `<`, so
write parentheses around each comparison: `(1 < x) & (x < 2)`.

`x += 1` and `x **= 2` write into the memory of x, and everything that shares the memory changes:
`y = x`, and views. `x = x + 1` makes a new tensor. In place a tensor keeps its dtype, so an integer
tensor refuses 0.5. Autograd refuses both forms for a leaf that requires a gradient. It also refuses
the backward of a power whose input `**=` overwrote, as long as the derivative needs this input.

In practice: write `(x > 1) & (x < 2)` for masks of bools, `torch.logical_not(x)` for numbers, and
`x = x + 1` unless you mean to change every tensor that shares the memory. To change a parameter in
place, write it under `torch.no_grad()`.
## Predict
What is torch.tensor(6) ^ torch.tensor(3)?
## Look for
- [same] all 14 rows of arithmetic and comparison give the result of the function next to them
- [bits] 6 & 3, 6 | 3, 6 ^ 3 and ~6 are 2, 7, 5 and -7
- [logical] for 6 and 3, logical_and, logical_or, logical_xor and logical_not return True, True,
  False and False
- [slice] x[1:3] is torch.narrow(x, 0, 1, 2)
- [narrow] torch.narrow(0, 1, 2), as in the source, raises a TypeError: the tensor is missing
- [floats] a tensor of floats refuses &, |, ^ and ~
- [words] a tensor of two numbers refuses and, or, not and 1 < x < 2
- [floor] -7 // 2 and -7 % 2 are -4 and 1, and torch.fmod(-7, 2) is -1
- [alias] after y = x and x += 1, y has changed as well
- [power] after y = x and x **= 2, y holds the squares
- [new] after y = x and x = x + 1, y has not changed
- [cast] an integer tensor refuses += 0.5
- [leaf] a leaf that requires a gradient refuses += 1
- [overwritten] after y = x ** 2 and x **= 2, the backward of y raises a RuntimeError
## Try next
`--dtype bool`: 6 and 3 become True and True, where the list is right. refutes: bits
`--length 1`: words ask a tensor of one number for its truth, and get it. refutes: words
`--copy`: y = x.clone() instead of y = x. refutes: alias, power
## Source
EffectivePyTorch, chapter "Take advantage of the overloaded operators",
https://github.com/vahidk/EffectivePyTorch: the list, and x += y and x **= 2. Its narrow lacks the
tensor. Ours: every row as a run, and the rows that differ.
"""

from typing import Literal

import torch

from tuilab import Lab

NUMBERS = {  # the operator, and the function that the source names
    "-x": torch.neg,
    "x + y": torch.add,
    "x - y": torch.sub,
    "x * y": torch.mul,
    "x / y": torch.div,
    "x // y": torch.floor_divide,
    "x % y": torch.remainder,
    "x ** y": torch.pow,
    "x @ y": torch.matmul,
    "x > y": torch.gt,
    "x >= y": torch.ge,
    "x < y": torch.lt,
    "x <= y": torch.le,
    "abs(x)": torch.abs,
}
BITS = {
    "x & y": torch.logical_and,
    "x | y": torch.logical_or,
    "x ^ y": torch.logical_xor,
    "~x": torch.logical_not,
}
WORDS = {  # calls that need one truth value
    "and": lambda x: x and x,
    "or": lambda x: x or x,
    "not": lambda x: not x,
    "chain": lambda x: 1 < x < 2,
}
FLOATS = {
    "&": lambda x: x & x,
    "|": lambda x: x | x,
    "^": lambda x: x ^ x,
    "~": lambda x: ~x,
}


def run_rows(functions, x, y):
    """Return a row for each operator: its text, the function, both results, whether they agree."""
    rows = []
    for operator, function in functions.items():
        by_operator = eval(
            operator, {"x": x, "y": y}
        )  # the text in the table is the code that runs
        arguments = [x]
        if "y" in operator:
            arguments.append(y)
        by_function = function(*arguments)
        results = [str(by_operator.tolist()), str(by_function.tolist())]
        is_same = torch.equal(by_operator, by_function)
        rows.append([operator, function.__name__, *results, is_same])
    return rows


def count_refusals(lab, calls, x):
    count = 0
    for call in calls.values():
        if lab.raises(call, x):
            count += 1
    return count


def name_error(lab, function, *args):
    """Return the class of the error that a call raises."""
    return lab.raises(function, *args).partition(":")[0]


def compare_list(lab, device, dtype):
    lab.stage("the list")
    x = torch.tensor([6.0, -7.0], device=device)
    y = torch.tensor([3.0, 2.0], device=device)
    six, three = torch.tensor([6, 3], device=device).to(dtype)
    numbers = run_rows(NUMBERS, x, y)
    bits = run_rows(BITS, six, three)
    head = ("operator", "function", "operator gives", "function gives", "same")
    lab.table("operator and function", numbers + bits, head=head)
    agreeing = sum(row[4] for row in numbers)
    lab.claim("same", agreeing, equals=14)
    by_operator = [row[2] for row in bits]
    by_function = [row[3] for row in bits]
    lab.claim("bits", by_operator, equals=["2", "7", "5", "-7"], answers=int(six ^ three))
    lab.claim("logical", by_function, equals=["True", "True", "False", "False"])

    row = torch.arange(6, device=device)
    lab.claim("slice", torch.equal(row[1:3], torch.narrow(row, 0, 1, 2)))
    lab.claim("narrow", name_error(lab, torch.narrow, 0, 1, 2), equals="TypeError")


def divide_negatives(lab, device):
    lab.axes("rest", x="x", y="rest of x / 2")
    for number in torch.arange(-7, 8, device=device):
        lab.log(number.item(), arm="x % 2", rest=number % 2)
        lab.log(number.item(), arm="fmod(x, 2)", rest=number.fmod(2))
    seven = torch.tensor(-7, device=device)
    results = [(seven // 2).item(), (seven % 2).item(), seven.fmod(2).item()]
    lab.claim("floor", results, equals=[-4, 1, -1])


def backward_of_overwritten(x):
    base = x.clone()  # not a leaf: in place is allowed
    y = base**2
    base **= 2
    y.sum().backward()


def try_refusals(lab, device, length):
    lab.stage("refusals")
    lab.claim("floats", count_refusals(lab, FLOATS, torch.ones(2, device=device)), equals=4)
    x = torch.full((length,), 1.5, device=device)
    lab.claim("words", count_refusals(lab, WORDS, x), equals=4)
    integers = torch.tensor([6, 3], device=device)
    lab.claim("cast", name_error(lab, integers.__iadd__, 0.5), equals="RuntimeError")
    leaf = torch.ones(2, device=device, requires_grad=True)
    lab.claim("leaf", name_error(lab, leaf.__iadd__, 1), equals="RuntimeError")
    error = name_error(lab, backward_of_overwritten, leaf)
    lab.claim("overwritten", error, equals="RuntimeError")


def write_in_place(lab, device, copy):
    lab.stage("in place")
    x = torch.tensor([6.0, -7.0], device=device)
    other = x.clone() if copy else x
    x += 1
    lab.claim("alias", other, equals=[7, -6])

    x = torch.tensor([6.0, -7.0], device=device)
    other = x.clone() if copy else x
    x **= 2
    lab.claim("power", other, equals=[36, 49])

    x = torch.tensor([6.0, -7.0], device=device)
    other = x
    x = x + 1
    lab.claim("new", other, equals=[6, -7])


def run(
    lab: Lab,
    dtype: Literal["int64", "bool"] = "int64",  # of 6 and 3 where operators work on bits
    length: int = 2,  # of the tensor that words ask for its truth, 1..1000
    copy: bool = False,  # y = x.clone() before x is changed in place
) -> None:
    device = lab.device()
    compare_list(lab, device, getattr(torch, dtype))
    divide_negatives(lab, device)
    try_refusals(lab, device, length)
    write_in_place(lab, device, copy)
