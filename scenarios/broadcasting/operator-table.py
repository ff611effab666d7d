"""Operators are short for functions, but ^ and ~ work on bits, and words such as `and` have no tensor form.

Each operator of Python calls a function of torch: `x + y` is `torch.add(x, y)`, `x[1:3]` is `torch.narrow(x, 0, 1, 2)`. The
source lists them. Most of the list holds, and the table below runs every row of it.

`&`, `|`, `^` and `~` are operators on bits. For bool there is one bit, so they are the logical functions that the list names.
For integers they are not: 6 & 3 is 2 and ~6 is -7, while the functions say True and False. Floats have no such operators at
all.

Division rounds down: -7 // 2 is -4, and the remainder has the sign of the divisor, as in Python. `fmod` and C round towards
0.

`and`, `or`, `not` and a chain like 1 < x < 2 cannot be redefined by a class: Python asks for one truth value, and a tensor of
many has none. Write `&`, `|`, `~` with parentheses around the comparisons, because `&` binds stronger than `<`.

`x += 1` writes into the memory of x, and everything that shares it sees that: `y = x` and views. `x = x + 1` makes a new
tensor. In place a tensor keeps its dtype, so an integer one refuses 0.5, and a leaf that requires a gradient refuses all of
it.
## Predict
What is torch.tensor(6) ^ torch.tensor(3)?
## Look for
- [same] all 14 rows of arithmetic and comparison give what the function beside them gives
- [bits] 6 & 3, 6 | 3, 6 ^ 3 and ~6 are 2, 7, 5 and -7
- [logical] the functions of the list, logical_and, _or, _xor and _not, say True, True, False and False
- [slice] x[1:3] is torch.narrow(x, 0, 1, 2)
- [narrow] torch.narrow(0, 1, 2), as in the source, is refused: it lacks the tensor
- [floats] &, |, ^ and ~ refuse floats
- [words] and, or, not and 1 < x < 2 refuse a tensor of two numbers
- [floor] -7 // 2 and -7 % 2 are -4 and 1, torch.fmod says -1
- [alias] after y = x and x += 1, y has changed too
- [new] after x = x + 1 it has not
- [cast] an integer tensor refuses += 0.5
- [leaf] a leaf that requires a gradient refuses += 1
## Try next
`--dtype bool`: True and True, where the list is right. refutes: bits
`--length 1`: words ask a tensor of one number for its truth, and get it. refutes: words
`--copy`: y = x.clone() instead of y = x. refutes: alias
## Source
EffectivePyTorch, chapter "Take advantage of the overloaded operators", https://github.com/vahidk/EffectivePyTorch: the list.
Ours: every row as a run, and what deviates.
"""

from typing import Literal

import torch

from tuilab import Lab

NUMBERS = (  # operator, and the function that the source names
    "-x: neg; x + y: add; x - y: sub; x * y: mul; x / y: div; x // y: floor_divide; x % y: remainder; x ** y: pow; "
    "x @ y: matmul; x > y: gt; x >= y: ge; x < y: lt; x <= y: le; abs(x): abs"
)
BITS = "x & y: logical_and; x | y: logical_or; x ^ y: logical_xor; ~x: logical_not"


def rows_of(listed, x, y):
    """Run both forms of each row: operator, function, what they give, whether that is the same."""
    found = []
    for row in listed.split("; "):
        operator, name = row.split(": ")
        ours = eval(operator, {"x": x, "y": y})  # what stands in the table is what is run
        theirs = getattr(torch, name)(*(x, y) if "y" in operator else (x,))
        found.append((operator, name, str(ours.tolist()), str(theirs.tolist()), torch.equal(ours, theirs)))
    return found


def words(x):
    return [lambda: x and x, lambda: x or x, lambda: not x, lambda: 1 < x < 2]


def refused(lab, calls):
    """How many of some calls raise."""
    return sum(bool(lab.raises(call)) for call in calls)


def run(
    lab: Lab,
    dtype: Literal["int64", "bool"] = "int64",  # of 6 and 3 where operators work on bits
    length: int = 2,  # of the tensor that words ask for its truth, 1..1000
    copy: bool = False,  # y = x.clone() before x += 1
) -> None:
    device = lab.device()
    lab.stage("the list")
    x, y = torch.tensor([6.0, -7.0], device=device), torch.tensor([3.0, 2.0], device=device)
    whole = torch.tensor([6, 3], device=device).to(getattr(torch, dtype))
    numbers, bits = rows_of(NUMBERS, x, y), rows_of(BITS, *whole)
    lab.table(
        "operator and function", numbers + bits, head=("operator", "function", "operator gives", "function gives", "same")
    )
    lab.claim("same", sum(row[4] for row in numbers), equals=14)
    lab.claim("bits", [row[2] for row in bits], equals=["2", "7", "5", "-7"], answers=int(whole[0] ^ whole[1]))
    lab.claim("logical", [row[3] for row in bits], equals=["True", "True", "False", "False"])
    row = torch.arange(6, device=device)
    lab.claim("slice", torch.equal(row[1:3], torch.narrow(row, 0, 1, 2)))
    lab.claim("narrow", lab.raises(torch.narrow, 0, 1, 2).partition(":")[0], equals="TypeError")
    lab.axes("rest", x="x", y="rest of x / 2")
    for number in torch.arange(-7, 8, device=device):
        lab.log(number.item(), arm="x % 2", rest=number % 2)
        lab.log(number.item(), arm="fmod(x, 2)", rest=number.fmod(2))
    seven = torch.tensor(-7, device=device)
    lab.claim("floor", [(seven // 2).item(), (seven % 2).item(), seven.fmod(2).item()], equals=[-4, 1, -1])

    lab.stage("what is refused")
    lab.claim("floats", refused(lab, [lambda: x & x, lambda: x | x, lambda: x ^ x, lambda: ~x]), equals=4)
    lab.claim("words", refused(lab, words(torch.full((length,), 1.5, device=device))), equals=4)
    lab.claim("cast", lab.raises(whole.__iadd__, 0.5).partition(":")[0], equals="RuntimeError")
    leaf = torch.ones(2, device=device, requires_grad=True)
    lab.claim("leaf", lab.raises(leaf.__iadd__, 1).partition(":")[0], equals="RuntimeError")

    lab.stage("in place")
    other = x.clone() if copy else x
    x += 1
    lab.claim("alias", other, equals=[7, -6])
    other = x
    x = x + 1
    lab.claim("new", other, equals=[7, -6])
