"""Mistakes in the lessons of runtime."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "gc-pause", "step()\n    plain = ", "step()\n        gc.collect()\n    plain = ", "plain"
    ),
    Mistake("gc-pause", "for number in range(300)", "for number in range(3)", "kept"),
    Mistake(
        "gc-pause",
        '        lab.claim("no-garbage"',
        '        make_cycle(lab.device())\n        lab.claim("no-garbage"',
        "no-garbage",
    ),
    Mistake(
        "gc-pause",
        "    del node\n        gc.collect(1)",
        "    del node\n        gc.collect(2)",
        "old",
    ),
    Mistake("gc-pause", "return (number,)", "return ([],)", "tuples"),
    Mistake("gc-pause", "kept = error  #", "kept = str(error)  #", "exception"),
    Mistake(
        "gc-pause",
        "reference = make_cycle(device)\n        gc.freeze()",
        "gc.freeze()\n        reference = make_cycle(device)",
        "frozen-garbage",
    ),
    Mistake(
        "gc-pause", "gc.freeze()\n        searched", "searched", "frozen-count, frozen-garbage"
    ),
    Mistake("op-overhead", "add_one, x)\n    lab", "add_one, x.double())\n    lab", "same-bytes"),
    Mistake("op-overhead", "lambda x: x[0]", "lambda x: x[0] + 0", "views"),
    Mistake("op-overhead", "x.split(1)", "x.split(2)", "rows"),
    Mistake("op-overhead", "* scale + shift", "* scale + shift + 0", "written-out"),
    Mistake("op-overhead", "F.layer_norm(x,", "F.layer_norm(x + 0,", "one-call"),
    Mistake(
        "op-overhead",
        "lab.count(write_out_norm,",
        "lab.count(call_norm,",
        "written-out, backward",
    ),
    Mistake("op-overhead", "variance + 1e-5", "variance + 0.1", "same-numbers"),
    Mistake("op-overhead", "with torch.no_grad():", "with torch.enable_grad():", "nodes"),
    Mistake("batch-gather", "x.gather(1, where)", "x.flip(1).gather(1, where)", "same"),
    Mistake("batch-gather", "torch.jit.script(by_loop)", "torch.jit.script(indexed)", "script"),
    Mistake(
        "batch-gather",
        "x.gather(1, where)",
        "x.clone().clone().clone().gather(1, where)",
        "vectorised",
    ),
    Mistake("batch-gather", "lab.count(arm, leaf,", "lab.count(indexed, leaf,", "backward"),
    Mistake("batch-gather", "x[1, 0])", "x[0, -1])", "neighbour"),
    Mistake("batch-gather", "tensor([LENGTH, 0, 0])", "tensor([0, LENGTH, 0])", "neighbour"),
    Mistake(
        "batch-gather", "lab.raises(arm, x, large)", "lab.raises(arm, x, large % 3)", "refused"
    ),
    Mistake("batch-gather", "flattened_with_cuda, x, index)", "flattened, x, index)", "cuda"),
    Mistake("batch-gather", "tensor([0, -1, 0])", "tensor([0, 1, 0])", "negative"),
    Mistake(
        "fuse-pointwise",
        "return x * 0.5 * (1 + torch.erf(x / root))",
        "return x * torch.sigmoid(1.702 * x)",
        "written-out, script, same, constant",
    ),
    Mistake("fuse-pointwise", '"script": script,', '"script": F.gelu,', "script, llvm"),
    Mistake("fuse-pointwise", '"F.gelu": F.gelu}', '"F.gelu": plain}', "library"),
    Mistake("fuse-pointwise", "(x, 1.41421)", "(x, 1.41)", "constant"),
    Mistake("fuse-pointwise", "nn.LSTMCell(32, 32)", "nn.RNNCell(32, 32)", "cell"),
    Mistake("fuse-pointwise", "nn.LSTM(32, 32)", "nn.RNN(32, 32)", "sequence"),
    Mistake(
        "fuse-optimizer",
        '"loop": {"foreach": False}',
        '"loop": {"foreach": True}',
        "loop, loop-peak, default",
    ),
    Mistake(
        "fuse-optimizer",
        '"foreach": {"foreach": True}',
        '"foreach": {"foreach": False}',
        "foreach-peak",
    ),
    Mistake("fuse-optimizer", "aten._foreach", "aten.", "foreach"),
    Mistake(
        "fuse-optimizer",
        '"fused": {"fused": True}',
        '"fused": {"foreach": False}',
        "fused, fused-peak",
    ),
    Mistake("fuse-optimizer", "numbers, {}, device", "numbers, {'fused': True}, device", "default"),
    Mistake("graph-breaks", "y = y / y.sum().item()", "y = y / y.sum()", "broken"),
    Mistake(
        "graph-breaks",
        "y = torch.where(y.sum() > 9,",
        "y = torch.where(y.sum().item() > 9 * y.abs(),",
        "mended",
    ),
    Mistake("graph-breaks", "and x.shape[0] > 4", "and x.sum() > 4", "shape"),
    Mistake("graph-breaks", "chain(x.exp(), 1)", "chain(x.exp(), 0)", "helper"),
    Mistake("graph-breaks", "printing=3", "printing=9", "loop"),
    Mistake("graph-breaks", "(x), function(x))", "(x), function(x + 1))", "same"),
    Mistake("graph-breaks", "fullgraph=True)", "fullgraph=False)", "fullgraph"),
    Mistake("compile-modes", "(32, 32, 7) * 3", "(32, 7, 1) * 3", "epochs"),
    Mistake("compile-modes", '"automatic": None', '"automatic": False', "automatic, one"),
    Mistake("compile-modes", '"dynamic": True', '"dynamic": None', "symbols"),
    Mistake("compile-modes", "sizes), 100, 1]", "sizes), 1, 1]", "again, one"),
    Mistake("compile-modes", "sizes), 100, 1]", "sizes), 100, 7]", "one"),
    Mistake(
        "compile-modes",
        "(False, True), (False, False)] * 2",
        "(True, True), (True, False)] * 2",
        "states",
    ),
    Mistake("compile-modes", "), function(*arguments))", "), -function(*arguments))", "same"),
    Mistake(
        "compile-modes", '"reduce-overhead", "max-autotune")', '"default", "max-autotune")', "modes"
    ),
    Mistake(
        "compile-modes", "dynamo.accumulated_recompile_limit]", "dynamo.recompile_limit]", "limits"
    ),
    Mistake("compile-modes", "patch(recompile_limit=64)", "patch(recompile_limit=9)", "raised"),
    Mistake("compile-modes", "recompile_limit=5)", "recompile_limit=6)", "accumulated"),
    Mistake("compile-modes", "net, calls, False, True)", "net, calls, True, True)", "fullgraph"),
    Mistake(
        "compile-start",
        'count_compiled(blocks, "whole", [x, x, small])',
        'count_compiled(blocks, "whole", [x, small, small])',
        "lazy, shape",
    ),
    Mistake(
        "compile-start",
        "        return x + self.second(",
        "        return self.second(",
        "whole, by-block, by-block-eval, shape",
    ),
    Mistake("compile-start", "(mark_batch, mark_nothing)", "(mark_nothing, mark_batch)", "marked"),
    Mistake(
        "compile-start", "if x.shape[0] == ROWS else x", "if x.shape[1] == WIDTH else x", "strict"
    ),
    Mistake(
        "compile-start",
        "    net.compile(backend=in_place)\n    net(x)",
        "    torch.compile(net, backend=in_place)(x)",
        "sequential",
    ),
    Mistake(
        "compile-start",
        "expected = [net(batch) for batch in batches]",
        "expected = [net(batch) + 1 for batch in batches]",
        "same",
    ),
]
