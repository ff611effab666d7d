"""Mistakes in the lessons of data."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake("map-dataset-bugs", '"by index": "index"}', '"by index": "choice"}', "index"),
    Mistake("map-dataset-bugs", "random.choice(paths)", "random.choice(self.paths)", "bugs"),
    Mistake(
        "map-dataset-bugs", 'nothing = make((*starred, "*.jpg"), ', "nothing = make(files, ", "glob"
    ),
    Mistake("map-dataset-bugs", "torch.zeros(4)", "torch.zeros(3)", "collate"),
    Mistake("map-dataset-bugs", "for n in (0, 1)]", "for n in (0, 0)]", "message, frames, class"),
    Mistake("map-dataset-bugs", "{}.popitem", "[].remove", "class"),
    Mistake("map-dataset-bugs", "iter(range(8))", "iter(range(ITEMS))", "stop"),
    Mistake(
        "sampler-order",
        "torch.manual_seed(0)\n",
        "torch.manual_seed(workers)\n",
        "one-order, second",
    ),
    Mistake(
        "sampler-order",
        "two_epochs(workers, draw, is_own=True)",
        "two_epochs(workers, draw)",
        "own",
    ),
    Mistake("sampler-order", "(4, sampler=noting(pids))", "(2, sampler=noting(pids))", "main"),
    Mistake("sampler-order", "[two_epochs(n, draw) for", "[two_epochs(n, draw)[::-1] for", "drawn"),
    Mistake(
        "sampler-order",
        "num_workers=workers,",
        "num_workers=workers, worker_init_fn=lambda worker: numpy.random.seed(0),",
        "numpy",
    ),
    Mistake(
        "sampler-order",
        "        if is_told:\n            sampler.set_epoch(epoch)\n",
        "",
        "set-epoch",
    ),
    Mistake(
        "sampler-order",
        "make_loader(n, batch_sampler=lists)",
        "make_loader(n, batch_sampler=lists[:2])",
        "lists",
    ),
    Mistake("sampler-order", "make_loader, 0, batch_sampler=lists,", "make_loader, 0,", "refused"),
    Mistake(
        "loader-workers",
        "num_workers=workers, collate_fn",
        "num_workers=workers, shuffle=True, collate_fn",
        "order",
    ),
    Mistake("loader-workers", "epoch[first::workers]", "epoch[first :: workers + 1]", "in-turn"),
    Mistake(
        "loader-persist",
        "persistent_workers=is_kept",
        "persistent_workers=False",
        "started, left, stale, cache, init",
    ),
    Mistake("loader-persist", "        self.cache.add(index)\n", "", "cache"),
    Mistake("loader-persist", "loader.dataset.epoch, asked = epoch,", "asked =", "stale"),
    Mistake("loader-persist", "del batches", "pass", "look"),
    Mistake("loader-persist", "in make_loader(0)", "in make_loader(1)", "init"),
    Mistake("loader-persist", "partial(make_loader, 0,", "partial(make_loader, 1,", "refused"),
    Mistake("loader-persist", "prefetch_factor=prefetch, ", "", "ahead"),
    Mistake("loader-memory", '"tensor": tensor,', '"tensor": names,', "tensor"),
    Mistake("loader-memory", '"frozen list": names}', '"frozen list": array}', "freeze"),
    Mistake("loader-memory", 'found["Rss"]', 'found["Private_Dirty"]', "rss"),
    Mistake(
        "iterable-droplast",
        "(range(items), workers, drop_last=True)",
        "(Stream(items), workers, drop_last=True)",
        "map",
    ),
    Mistake(
        "iterable-droplast",
        "Stream(items), workers, drop_last=True",
        "Stream(items), workers",
        "stream, length",
    ),
    Mistake("iterable-droplast", "shuffle=True", "shuffle=False", "never"),
    Mistake("iterable-droplast", "batch=20", "batch=16", "nothing"),
    Mistake("iterable-droplast", "size < BATCH", "size < 5", "small"),
    Mistake("iterable-droplast", "in (True, False)", "in (False, False)", "length"),
    Mistake(
        "iterable-droplast",
        "Stream(items, is_of_batches=True), workers, batch=None",
        "Stream(items), workers, drop_last=True",
        "batches",
    ),
    Mistake(
        "tar-dupes", "step: unpack(whole),", "step: unpack(whole, first, step),", "copies, again"
    ),
    Mistake("tar-dupes", "Stream(read), 8,", "Stream(read), 16,", "again"),
    Mistake(
        "tar-dupes",
        "else unpack(whole, first, step)",
        "else unpack_part(whole, index, first, step)",
        "headers",
    ),
    Mistake("tar-dupes", "partial(unpack_part, whole, index)", "partial(unpack, whole)", "bytes"),
    Mistake("tar-dupes", "get_worker_info().worker_id", "get_worker_info().id", "printed"),
    Mistake(
        "tar-vs-files",
        "in sorted(folder.iterdir())",
        "in sorted(folder.iterdir(), reverse=True)",
        "same",
    ),
    Mistake(
        "tar-vs-files",
        "_ in tar:\n        tar.members =",
        "_ in tar:\n        tar.members +=",
        "kept",
    ),
    Mistake(
        "pin-memory", "for workers in (0, 1)], equals", "for workers in (1, 1)], equals", "shared"
    ),
    Mistake("pin-memory", "for is_asked in (False, True)", "for is_asked in (True, True)", "grid"),
    Mistake(
        "pin-custom",
        '"class with pin_memory()": Pinning',
        '"class with pin_memory()": Plain',
        "found",
    ),
    Mistake("pin-custom", "Forgetful(StandIn())", "Pinning(StandIn())", "returned"),
    Mistake("non-blocking", '"cpu", non_blocking=True', '"cpu", copy=True', "no-op"),
    Mistake(
        "non-blocking",
        "main if streams == 1 else side",
        "main if streams == 0 else side",
        "in-turn",
    ),
]
