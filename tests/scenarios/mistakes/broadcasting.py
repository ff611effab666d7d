"""Mistakes in the lessons of broadcasting."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake("broadcast-basics", "torch.ones(3, 1,", "torch.ones(2, 3, 1,", "valid"),
    Mistake("broadcast-basics", "plain.value, with", "plain.value, -with", "equal"),
    Mistake(
        "broadcast-basics", "return a + b", "return a + 2 * b", "operators, bytes, peak, gradient"
    ),
    Mistake("broadcast-basics", "b.detach().expand(-1,", "b.detach().repeat(1,", "stride, written"),
    Mistake("broadcast-basics", "torch.equal(gradient, ", "torch.equal(-gradient, ", "gradients"),
    Mistake(
        "broadcast-trap",
        "column = torch.tensor([[1.0], [2.0]]",
        "column = torch.tensor([1.0, 2.0]",
        "twelve, given-away",
    ),
    Mistake("broadcast-trap", "torch.ones(3, 4)", "torch.ones(3, 1)", "refused"),
    Mistake(
        "broadcast-trap", "prediction - target.view_as", "prediction + target.view_as", "slope-3"
    ),
    Mistake("squeeze-dim", "torch.zeros(1, 1,", "torch.zeros(2, 1,", "number"),
    Mistake("squeeze-dim", "torch.zeros(3, 2,", "torch.zeros(3, 1,", "silent"),
    Mistake("squeeze-dim", "torch.ones(1, 4,", "torch.ones(2, 4,", "reduced"),
    Mistake("squeeze-dim", "named(3 * x + 1)", "named(2 * x + 1)", "slope-3"),
    Mistake("operator-table", '"x % y": torch.remainder', '"x % y": torch.fmod', "same"),
    Mistake("operator-table", "torch.logical_or,", "torch.logical_xor,", "logical"),
    Mistake("operator-table", "row[1:3]", "row[1:2]", "slice"),
    Mistake("operator-table", "torch.narrow, 0, 1, 2", "torch.narrow, row, 0, 1, 2", "narrow"),
    Mistake("operator-table", "lambda x: ~x", "lambda x: -x", "floats"),
    Mistake("operator-table", "(seven // 2)", "seven.div(2, rounding_mode='trunc')", "floor"),
    Mistake("operator-table", "integers.__iadd__, 0.5", "integers.__iadd__, 1", "cast"),
    Mistake("operator-table", "requires_grad=True", "requires_grad=False", "leaf"),
    Mistake("operator-table", "x = x + 1\n    lab", "x += 1\n    lab", "new"),
    Mistake("operator-table", "    base **= 2", "    base = base**2", "overwritten"),
    Mistake("broadcast-merge", "parted.value.shape)", "parted.value.mT.shape)", "source-shape"),
    Mistake("broadcast-merge", "of_a, bias - bias_of_b)", "of_a, bias)", "two-biases"),
    Mistake("broadcast-merge", "torch.add, a, b", "torch.add, a, a", "no-sum"),
    Mistake("broadcast-merge", "F.pad(b, (5, 0))", "F.pad(b, (0, 5))", "padded"),
]
