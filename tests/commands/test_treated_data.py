"""Treatments of DataLoaders: they load as the treatment says, and the training learns the same."""

import pytest

from tests.commands.treated_script import Treat

pytestmark = pytest.mark.real_torch
# A dataset that says in which process its items are made.
LOADER = """
class Items(torch.utils.data.Dataset):
    def __len__(self): return len(data)
    def __getitem__(self, index):
        worker = torch.utils.data.get_worker_info()
        number = -1 if worker is None else worker.id
        return (*data[index], number)
def columns(items):
    x, y, workers = zip(*items)
    seen.update(workers)
    return torch.stack(x), torch.stack(y), sorted(set(workers))
seen = set()
loader = DataLoader(Items(), batch_size=16, shuffle=True, collate_fn=columns)
optimizer = sgd()
makers = set()
for _ in range(3):
    for x, y, workers in loader:
        makers.update(workers)
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
print(sorted(makers), loader.num_workers, loader.persistent_workers)
"""


def test_workers_make_the_batches_and_the_losses_stay(treat: Treat) -> None:
    """The losses of three epochs are the same bit for bit, with shuffling and dropout."""
    plain = treat("", LOADER)
    treated = treat("workers=2", LOADER)

    assert plain.printed == ["[-1] 0 False"]
    assert treated.printed == ["[0, 1] 2 True"]
    assert len(plain.losses) == 12 and treated.losses == plain.losses
    (report,) = treated.reports
    assert report.did == "DataLoader(num_workers=2, persistent_workers=True) instead of 0 workers"
    assert treated.places("workers=2") == {
        "loader = DataLoader(Items(), batch_size=16, shuffle=True, collate_fn=columns)"
    }


def test_arguments_by_position_are_treated(treat: Treat) -> None:
    treated = treat(
        "workers=2,prefetch=5",
        """
        loader = DataLoader(data, 16, True, None, None, 1)
        print(loader.num_workers, loader.prefetch_factor, loader.batch_size)
        train(loader, sgd())
        """,
    )

    assert treated.printed == ["2 5 16"]
    assert treated.did("prefetch=5") == ["DataLoader(prefetch_factor=5)"]


def test_each_item_of_an_iterable_dataset_comes_once(treat: Treat) -> None:
    treated = treat(
        "workers=2",
        """
        class Rows(torch.utils.data.IterableDataset):
            def __iter__(self): return iter(data)
        loader = DataLoader(Rows(), batch_size=16)
        train(loader, sgd(), epochs=1)
        print(loader.num_workers)
        """,
    )

    assert treated.printed == ["0"] and len(treated.losses) == 4
    assert treated.why("workers=2") == [
        "an IterableDataset: each worker would yield all of its items"
    ]


def test_loader_that_has_the_arguments_is_already_set(treat: Treat) -> None:
    treated = treat(
        "workers=1,persistent,prefetch=3",
        """
        loader = DataLoader(data, 16, num_workers=1, persistent_workers=True, prefetch_factor=3)
        train(loader, sgd(), epochs=1)
        """,
    )

    assert all(treated.is_set(name) for name in ("workers=1", "persistent", "prefetch=3"))
    assert not any(report.did for report in treated.reports)


def test_loader_that_is_made_from_a_treated_one_is_not_taken_for_the_scripts(treat: Treat) -> None:
    """As accelerate does with each DataLoader that it prepares."""
    treated = treat(
        "workers=2",
        """
        first = DataLoader(data, 16)
        second = DataLoader(
            data,
            16,
            num_workers=first.num_workers,
            persistent_workers=first.persistent_workers,
        )
        train(second, sgd(), epochs=1)
        """,
    )

    (report,) = treated.reports
    assert report.did and not report.is_already_set


def test_loader_without_workers_keeps_none(treat: Treat) -> None:
    treated = treat("persistent,prefetch=3,pin", "train(DataLoader(data, 16), sgd(), epochs=1)")

    assert treated.why("persistent") == ["the DataLoader has no workers"]
    assert treated.why("prefetch=3") == ["the DataLoader has no workers"]
    assert treated.why("pin") == ["torch sees no GPU here"]


def test_script_without_a_loader_says_so(treat: Treat) -> None:
    treated = treat("workers=2", "train([data[:16]] * 4, sgd(), epochs=1)")

    assert treated.why("workers=2") == ["the script made no DataLoader"]


def test_arguments_that_torch_refuses_are_those_of_the_script_again(treat: Treat) -> None:
    treated = treat(
        "workers=-1",
        """
        loader = DataLoader(data, 16)
        train(loader, sgd(), epochs=1)
        print(loader.num_workers)
        """,
    )

    assert treated.printed == ["0"]
    (why,) = treated.why("workers=-1")
    assert why.startswith("torch refused DataLoader(num_workers=-1")


def test_error_of_the_script_stays_the_error_of_the_script(treat: Treat) -> None:
    treated = treat(
        "workers=2", "DataLoader(data, batch_size=16, sampler=1, shuffle=True)", fails=True
    )

    assert treated.seen.done.returncode == 1
    assert "sampler option is mutually exclusive with shuffle" in treated.seen.done.stderr


def test_ideal_loader_repeats_its_first_batches(treat: Treat) -> None:
    treated = treat(
        "ideal-loader=2",
        """
        made = []
        class Items(torch.utils.data.Dataset):
            def __len__(self): return len(data)
            def __getitem__(self, index):
                made.append(index)
                return data[index]
        loader = DataLoader(Items(), batch_size=16)
        rows = [[x[0, 0].item() for x, y in loader] for _ in range(3)]
        train(loader, sgd())
        print(len(made), [len(row) for row in rows])
        print(all(row == rows[0] and row[:2] == row[2:] for row in rows), len(loader))
        """,
    )

    assert treated.printed == ["32 [4, 4, 4]", "True 4"]
    assert treated.did("ideal-loader=2") == ["repeats its first 2 batches"]
    # A loop begins with one wait and ends with one.
    assert treated.seen.kinds.count("wait") == 6 * (1 + 4 + 1)


def test_workers_of_an_ideal_loader_end_with_the_last_kept_batch(treat: Treat) -> None:
    treated = treat(
        "ideal-loader=2,workers=2",
        """
        import multiprocessing
        loader = DataLoader(data, batch_size=8)
        for number, batch in enumerate(loader):
            if number == 3: print(len(multiprocessing.active_children()))
        train(loader, sgd())
        """,
    )

    assert treated.printed == ["0"] and len(treated.losses) == 24


def test_ideal_loader_of_few_batches_brings_all_of_them(treat: Treat) -> None:
    treated = treat(
        "ideal-loader=8",
        "loader = DataLoader(data, 16)\nprint([sum(1 for _ in loader) for _ in range(3)])",
    )

    assert treated.printed == ["[4, 4, 4]"]
