"""Mistakes in the lessons of gpu."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake("oom-anatomy", "torch.optim.AdamW(", "torch.optim.Adagrad(", "parts"),
    Mistake(
        "oom-anatomy",
        "training.optimizer.zero_grad()\n    with memory:\n        loss",
        "with memory:\n        loss",
        "forward",
    ),
    Mistake("oom-anatomy", "range(50, 100, 5)", "range(85, 100, 5)", "operators, small"),
    Mistake(
        "oom-anatomy",
        "            live_inside = memory.live_bytes\n",
        "            pass\n        live_inside = memory.live_bytes\n",
        "traceback",
    ),
    Mistake("sync-count", "x: x[x.argmax()],", "x: x[x.argmax()[None]],", "read, meta"),
    Mistake("sync-count", "x: x.tolist()", "x: x.nonzero()", "blind"),
    Mistake("sync-count", "x: str(x)", "x: x.cpu()", "meta"),
    Mistake("sync-count", "torch.where(x > 0, x, 0)", "torch.where(x > 0, x, x[0].item())", "free"),
    Mistake(
        "sync-count",
        "x, device: x.to(device, non_blocking=True)",
        "x, device: x.to(device)",
        "copy",
    ),
    Mistake(
        "sync-count",
        "net(x)[mask]  # (rows of the mask, 8); wait 1, and once more in backward\n"
        "    target = y[mask]",
        "net(x)\n    target = y",
        "step, epoch, same",
    ),
    Mistake("sync-count", "assert not loss.isnan()", "assert loss.shape == ()", "step, epoch"),
    Mistake("sync-count", "/ mask.sum()", "/ len(x)", "same"),
    Mistake("sync-count", "return loss\n", "return loss.detach()\n", "graph"),
    Mistake("sync-count", "[loss.detach() for loss in losses]", "losses", "detached"),
    Mistake("create-on-device", "return x.new_zeros(8)", "return torch.zeros(8).to(x)", "like"),
    Mistake("create-on-device", "device=x.device).tril()", "dtype=x.dtype).tril()", "mask"),
    Mistake("create-on-device", "with torch.device(device):", 'with torch.device("cpu"):', "model"),
    Mistake("create-on-device", "build_model().state_dict(), ", "{}, False, ", "checkpoint"),
    Mistake("create-on-device", "x, torch.zeros(ROWS))", "x, torch.tensor(0.0))", "forgotten"),
    Mistake("conv-algos", "w.flatten(1) @", "w.flip(2, 3).flatten(1) @", "agree"),
    Mistake("conv-algos", "y_im2col = im2col(x, weight)", "y_im2col = library(x, weight)", "bits"),
    Mistake("conv-algos", "CALLS = 48", "torch.backends.cudnn.benchmark = True\nCALLS = 48", "off"),
    Mistake("cuda-graphs", "x = batches[number]", "x = x.copy_(batches[number])", "assigned"),
    Mistake(
        "cuda-graphs",
        "recording = record(step, x)",
        "recording = record(step, x)\n    recording.replay = lambda: step(recorded_x)",
        "python, result, number, weights",
    ),
    Mistake("cuda-graphs", "step.rate = 2.0", "step.rate = 1.0", "number"),
    Mistake("cuda-graphs", "assign=assign", "assign=False", "weights"),
    Mistake(
        "cuda-graphs", "append(recording.replay())", "append(recording.replay() + 0)", "result"
    ),
    Mistake("cuda-graphs", "nn.Dropout(0.5)", "nn.Dropout(0.0)", "dropout"),
    Mistake("cuda-graphs", "batches[0][:1]", "batches[0]", "shape"),
]
