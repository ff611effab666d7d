"""Mistakes in the lessons of cpu."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "embedding-bound",
        '"no-flops", dense.flops',
        '"no-flops", lab.count(nn.Linear(2, 2), torch.rand(1, 2)).flops',
        "no-flops",
    ),
    Mistake("embedding-bound", "64, 64, 3, padding=1", "64, 64, 1", "conv"),
    Mistake(
        "embedding-bound",
        "dense = lab.count(look_up, ",
        "dense = lab.count(look_up_sparse, ",
        "dense",
    ),
    Mistake("embedding-bound", "part.to_dense()", "2 * part.to_dense()", "same"),
    Mistake("embedding-bound", 'mode="sum", sparse=True)\n', 'mode="sum")\n', "optimizers"),
    Mistake(
        "cpu-ddp",
        "build_net(seed=rank))",
        "build_net(seed=rank), init_sync=False)",
        "same-start, mean, sum, uneven, weighed",
    ),
    Mistake("cpu-ddp", "2 * even_sum", "even_sum", "sum"),
    Mistake("cpu-ddp", "* RANKS * len(y)", "* len(y)", "weighed"),
    Mistake("cpu-ddp", "sent_bytes.append(sum(sent))", "sent_bytes.append(4 * sum(sent))", "bytes"),
]
