"""Facts about a training: what a tuning plans with."""

import json

import pytest

from tests.commands.treated_script import Treat
from tuilab.commands.facts.treated import ProcessTreatments, merge_reports, switched_off
from tuilab.commands.tune.script_facts import LoaderFacts, OptimizerFacts, RootFacts, ScriptFacts


@pytest.mark.real_torch
def test_facts_of_a_training_name_its_lines(treat: Treat) -> None:
    treated = treat(
        "",
        """
        loader = DataLoader(data, 16, num_workers=1, prefetch_factor=3)
        unused = DataLoader(data, 2)
        rows = torch.utils.data.Subset(data, range(32))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        train(loader, optimizer, clear=lambda: optimizer.zero_grad(set_to_none=False))
        with torch.no_grad():
            for x, y in DataLoader(rows, 8): model(x)
        """,
        facts=True,
    )

    lines = treated.source.splitlines()
    training, evaluation = treated.facts.loaders
    assert training == LoaderFacts(
        kind="TensorDataset",
        workers=1,
        batch_size=16,
        prefetch=3,
        is_in_memory=True,
        loops=3,
        batches=12,
        file=training.file,
        line=training.line,
    )
    assert lines[training.line - 1].startswith("loader = ") and training.file.endswith("/train.py")
    assert (evaluation.kind, evaluation.is_in_memory) == ("Subset", True)
    assert (evaluation.batch_size, evaluation.loops, evaluation.batches) == (8, 1, 4)
    (optimizer,) = treated.facts.optimizers
    assert lines[optimizer.line - 1].startswith("optimizer = ")
    assert optimizer == OptimizerFacts(
        kind="AdamW",
        tensors=4,
        numbers=49,
        device="cpu",
        takes_fused=True,
        takes_foreach=True,
        fills_with_zeros=True,
        file=optimizer.file,
        line=optimizer.line,
    )
    (root,) = treated.facts.roots
    assert root == RootFacts(kind="Sequential", numbers=49, dtype="float32", device="cpu")
    settings = treated.facts.settings
    assert settings.torch.startswith("2.") and not settings.has_cuda and settings.cores > 0
    assert settings.threads >= 1
    assert (settings.world, settings.matmul_precision) == (1, "highest")
    assert treated.facts.ddp == [] and treated.reports == []


@pytest.mark.real_torch
def test_facts_of_roots_count_convolutions_attention_and_autocast(treat: Treat) -> None:
    treated = treat(
        "",
        """
        class Mixer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Conv2d(4, 8, 3, padding=1)
                self.second = torch.nn.ConvTranspose2d(8, 4, 1)
            def forward(self, x):
                x = self.second(self.first(x)).flatten(1)[:, None].float()
                for _ in range(2): x = torch.nn.functional.scaled_dot_product_attention(x, x, x)
                return x
        model = Mixer().to(memory_format=torch.channels_last)
        optimizer = sgd(fused=True)
        for _ in range(5):
            with torch.autocast("cpu", torch.bfloat16): out = model(torch.ones(2, 4, 4, 4))
            out.sum().backward()
            optimizer.step()
        """,
        facts=True,
    )

    (root,) = treated.facts.roots
    assert (root.kind, root.convolutions, root.are_channels_last) == ("Mixer", 2, True)
    assert (root.is_autocast, root.autocast_dtype, root.is_compiled) == (True, "bfloat16", False)
    assert root.attentions == 2
    assert treated.facts.optimizers[0].is_fused


@pytest.mark.real_torch
def test_facts_come_although_the_process_ends_early(treat: Treat) -> None:
    treated = treat("", "train(DataLoader(data, 16), sgd(), epochs=100)", steps=5, facts=True)

    assert treated.facts.loaders[0].batches == 5
    assert [root.kind for root in treated.facts.roots] == ["Sequential"]


@pytest.mark.real_torch
def test_sampler_of_batches_knows_their_size(treat: Treat) -> None:
    treated = treat(
        "",
        """
        batches = torch.utils.data.BatchSampler(range(64), 32, drop_last=False)
        train(DataLoader(data, batch_sampler=batches), sgd())
        """,
        facts=True,
    )

    assert treated.facts.loaders[0].batch_size == 32


@pytest.mark.real_torch
def test_loaders_of_one_line_share_their_facts(treat: Treat) -> None:
    treated = treat(
        "",
        """
        optimizer = sgd()
        for _ in range(40): train(DataLoader(data, 32), optimizer, epochs=1)
        """,
        facts=True,
    )

    (loader,) = treated.facts.loaders
    assert (loader.loops, loader.batches) == (40, 80)


@pytest.mark.real_torch
def test_compiled_model_and_collections_are_facts(treat: Treat) -> None:
    treated = treat(
        "",
        """
        import gc
        model = torch.compile(model, backend="eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(DataLoader(data, 16), optimizer, epochs=1)
        gc.collect()
        """,
        facts=True,
    )

    assert [root.is_compiled for root in treated.facts.roots] == [True]
    assert treated.facts.settings.collections >= 1
    assert treated.facts.settings.collecting_ns > 0


# ---- what a process sends may be anything

REPORT = {"treatment": "fused", "did": "AdamW(fused=True)", "file": "/home/ada/train.py", "line": 7}


def reports_of(*texts: str) -> ProcessTreatments:
    process = ProcessTreatments()
    for text in texts:
        process.take_report(text)
        process.take_facts(text)
    return process


def test_later_count_replaces_an_earlier_one_and_ranks_add_up() -> None:
    first = reports_of(json.dumps(REPORT), json.dumps(REPORT | {"count": 5}))
    second = reports_of(json.dumps(REPORT | {"count": 2}))

    (report,) = merge_reports([first, second])
    assert (report.count, report.did, report.line) == (7, "AdamW(fused=True)", 7)


def test_uploads_are_no_treatment() -> None:
    process = reports_of(json.dumps({"treatment": "uploads", "did": "nothing is uploaded"}))

    assert merge_reports([process]) == []
    assert switched_off([process, process]) == ["nothing is uploaded"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[" * 5000,
        "{}",
        "null",
        '{"treatment": 7}',
        '{"treatment": "fused", "count": -1}',
        '{"treatment": "fused", "line": 1e300}',
        '{"treatment": "fused", "compile_s": NaN}',
        '{"part": "loaders", "index": 0, "facts": {"workers": -1}}',
        '{"part": "loaders", "index": 100, "facts": {}}',
        '{"part": "__init__", "index": 0, "facts": {}}',
        '{"part": ["loaders"], "index": 0, "facts": {}}',
        '{"part": "ddp", "index": 0, "facts": {"bucket_mb": "25"}}',
        '{"part": "settings", "index": 0, "facts": 7}',
    ],
)
def test_report_of_another_form_is_ignored(text: str) -> None:
    process = reports_of(text)

    assert [*process.reports()] == [] and process.script_facts() == ScriptFacts()


def test_number_of_reports_of_a_process_is_limited() -> None:
    process = reports_of(*[json.dumps(REPORT | {"line": line}) for line in range(2000)])

    assert len([*process.reports()]) == 500
