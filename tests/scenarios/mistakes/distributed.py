"""Mistakes in the lessons of distributed."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "dp-vs-ddp",
        "DistributedDataParallel(Net())",
        "DistributedDataParallel(Net(), init_sync=False)",
        "ddp",
    ),
    Mistake("dp-vs-ddp", "[net.calls,", "[len(net.visits) // replicas,", "lost"),
    Mistake("dp-vs-ddp", "tensor.view_as(tensor)", "tensor", "parameters"),
    Mistake("dp-vs-ddp", "            copier.total = 0\n", "", "pass"),
    Mistake("no-sync", ".mean() / total", ".mean()", "right"),
    Mistake(
        "no-sync",
        'if inside in ("forward", "both")',
        'if inside in ("backward", "both")',
        "backward, forward",
    ),
    Mistake("no-sync", "lr=0.1", "lr=0.1 + dist.get_rank()", "together"),
    Mistake("no-sync", "micro, micro + 1, 1)", "micro, micro, 1)", "apart"),
    Mistake(
        "bucket-order",
        '"default": (built, {',
        '"default": (built, {"find_unused_parameters": True, ',
        "first, again",
    ),
    Mistake(
        "bucket-order",
        "nn.Linear(width, width, bias=False)  #",
        "nn.Linear(width, 1, bias=False)  #",
        "zeros, as-called, exposed",
    ),
    Mistake(
        "bucket-order",
        "train(unflagged, built, **spare)",
        "train(unflagged, built)",
        "nothing, raises",
    ),
    Mistake(
        "load-balance",
        "neighbours = split(sorted(lengths), batch)",
        "neighbours = split(lengths, batch)",
        "sorted, longer, neighbours",
    ),
    Mistake("load-balance", '": neighbours,', '": shuffled(neighbours),', "neighbours"),
    Mistake("load-balance", "range(3 - dist.get_rank())", "range(2)", "raises, join, half"),
    Mistake(
        "load-balance",
        "Join(nets[:1])",
        "Join(nets[:1], divide_by_initial_world_size=False)",
        "half",
    ),
    Mistake("fsdp-vs-ddp", "ddp_weights = weights", "ddp_weights = 1.1 * weights", "same"),
    Mistake(
        "fsdp-vs-ddp",
        "shard_by_layer(net, reshard=False)",
        "shard_by_layer(net, reshard=True)",
        "kept",
    ),
    Mistake("fsdp-vs-ddp", "shard(net, reshard=True)", "shard_by_layer(net, reshard=True)", "unit"),
    Mistake("fsdp-vs-ddp", 'if form == "late":', 'if form == "never":', "late"),
    Mistake("fsdp-vs-ddp", "train(net, torch.optim.Adam(", "train(net, torch.optim.SGD(", "ddp"),
    Mistake("fsdp-vs-ddp", "- before) / whole.nbytes", "- before) / part.nbytes", "ring, gloo"),
    Mistake(
        "fsdp-vs-ddp",
        "partial(reduce_scatter, part, whole)",
        "partial(all_gather, whole, part)",
        "gloo",
    ),
]
