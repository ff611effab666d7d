"""Mistakes in the lessons of observing."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "profiler",
        "counted = lab.count(train_step, net, images)",
        "counted = lab.count(net, images)",
        "counts",
    ),
    Mistake("profiler", "(row.self_cpu_time_total for", "(row.cpu_time_total for", "self"),
    Mistake(
        "profiler",
        'names.index("aten::conv2d")',
        'names.index("aten::native_batch_norm")',
        "nested",
    ),
    Mistake("profiler", "(group_by_input_shape=True)", "()", "shapes"),
    Mistake(
        "profiler",
        "python_profiler.runcall(train_step, net, images)",
        "python_profiler.runcall(net, images)",
        "cprofile",
    ),
    Mistake("profiler", '"self_device_time_total")', '"self_cpu_time")', "renamed"),
    Mistake("profiler", '"step": partial(train_step, net)', '"step": net', "backward"),
    Mistake("profiler", '{"forward": net,', '{"forward": partial(train_step, net),', "forward"),
    Mistake(
        "profiler",
        '    with record_function("backward"):\n        return',
        "        return",
        "label",
    ),
    Mistake("debug-apis", "call_within(stacks, arms", "call_within(profile, arms", "traces"),
    Mistake("debug-apis", "x.sqrt() * 0 ", "x * 0 ", "nan-only"),
    Mistake(
        "debug-apis", "set_detect_anomaly(True, check", "set_detect_anomaly(False, check", "switch"
    ),
    Mistake(
        "debug-apis",
        '"gradcheck": gradcheck,',
        '"gradcheck": partial(gradcheck, fast_mode=True),',
        "gradcheck",
    ),
    Mistake(
        "debug-apis",
        '"fast_mode": partial(gradcheck, fast_mode=True),',
        '"fast_mode": gradcheck,',
        "fast",
    ),
    Mistake(
        "debug-apis", '"gradgradcheck": gradgradcheck', '"gradgradcheck": gradcheck', "second-order"
    ),
    Mistake(
        "debug-apis",
        "random_numbers(64, torch.float32",
        "random_numbers(64, torch.float64",
        "float32",
    ),
    Mistake(
        "debug-apis",
        "partial(call_within, profile, plain)",
        "partial(call_within, detect_anomaly, plain)",
        "profiler",
    ),
    Mistake("logging-cost", "sums[index] += tensor.item()", "sums[index] += tensor", "reads"),
    Mistake(
        "logging-cost",
        "total += torch.stack([loss, hits,",
        "total[:] = torch.stack([loss, hits,",
        "same",
    ),
    Mistake(
        "logging-cost",
        "means.append(total / every)",
        "means.append(sampled[-1])",
        "noise, bad-batch",
    ),
    Mistake("logging-cost", "batch.mean() * len(batch)", "batch.mean() * BATCH", "row-sums"),
    Mistake("logging-cost", "written_share(-1), ", "written_share(1), ", "buffered"),
    Mistake("lightning", "(loss / self.every).backward()", "loss.backward()", "rest, same"),
    Mistake("lightning", "batches[:8], every=4)", "batches[:7], every=4)", "rest"),
    Mistake("lightning", " or is_last:", ":", "rest, same"),
    Mistake("lightning", '{"clip": 0.1}', "{}", "clip, same"),
    Mistake("lightning", "every=4, clip_each=0.1", "every=4, clip=0.1", "clip-each"),
    Mistake("lightning", '"dtype": torch.bfloat16', '"dtype": torch.float16', "mixed, same"),
    Mistake("lightning", "precision=16, accel", "precision=32, accel", "sixteen"),
    Mistake("lightning", "profilers.AdvancedProfiler()", "profilers.SimpleProfiler()", "advanced"),
]
