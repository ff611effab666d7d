"""A process group of one: there in the block, gone after it, and nothing of it stays in the environment."""

import os

import pytest

pytestmark = pytest.mark.real_torch


def test_the_group_is_there_in_the_block_and_gone_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    import torch.distributed as dist

    from tuilab.lab.group import group_of_one

    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    for _ in range(2):
        with group_of_one():
            total = torch.ones(2)
            dist.all_reduce(total)
            found = [dist.get_world_size(), dist.get_backend(), total.tolist()]

        assert found == [1, "gloo", [1, 1]]
        assert not dist.is_initialized()
        assert "GLOO_SOCKET_IFNAME" not in os.environ


def test_what_fails_in_the_block_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.distributed as dist

    from tuilab.lab.group import group_of_one

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with pytest.raises(KeyError, match="mine"), group_of_one():
        raise KeyError("mine")

    assert not dist.is_initialized()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


def test_there_is_one_group_at_a_time() -> None:
    import torch.distributed as dist

    from tuilab.lab.group import group_of_one

    with group_of_one(), pytest.raises(ValueError, match="twice"), group_of_one():
        pass

    assert not dist.is_initialized()
