"""Treatments of optimizers: their arguments are those of the treatment, and each is reported once."""

import pytest

from tests.commands.treated_script import Treat

pytestmark = pytest.mark.real_torch


@pytest.mark.parametrize("name", ["fused", "foreach"])
@pytest.mark.parametrize("kind", ["AdamW", "Adam", "SGD"])
def test_optimizer_gets_the_argument_once(treat: Treat, name: str, kind: str) -> None:
    """AdamW calls the __init__ of Adam."""
    line = f"optimizer = torch.optim.{kind}(model.parameters(), lr=0.1)"
    script = f"""
        {line}
        print(optimizer.param_groups[0]["{name}"])
        train(DataLoader(data, 16), optimizer)
        """
    plain = treat("", script)
    treated = treat(name, script)

    assert treated.printed == ["True"]
    (report,) = treated.reports
    assert (report.did, report.count) == (f"{kind}({name}=True)", 1)
    assert treated.places(name) == {line}
    assert treated.losses == pytest.approx(plain.losses, rel=1e-5)


def test_groups_and_subclasses_are_treated(treat: Treat) -> None:
    treated = treat(
        "fused",
        """
        class Mine(torch.optim.AdamW):
            def __init__(self, groups): super().__init__(groups, lr=0.1, foreach=True)
        mine = Mine([{"params": layer.parameters()} for layer in model if list(layer.parameters())])
        print([group["fused"] for group in mine.param_groups], len(mine.param_groups[0]["params"]))
        train(DataLoader(data, 16), mine)
        """,
    )

    assert treated.printed == ["[True, True] 2"]
    assert treated.did("fused") == ["Mine(fused=True)"] and len(treated.losses) == 12


def test_optimizer_that_has_the_argument_is_already_set(treat: Treat) -> None:
    treated = treat("fused", "train(DataLoader(data, 16), sgd(fused=True))")

    assert treated.is_set("fused") and treated.did("fused") == []


def test_fused_wins_where_foreach_is_wanted_as_well(treat: Treat) -> None:
    """Torch refuses both arguments together."""
    treated = treat(
        "fused,foreach",
        """
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        print(optimizer.param_groups[0]["fused"], optimizer.param_groups[0]["foreach"])
        train(DataLoader(data, 16), optimizer)
        """,
    )

    assert treated.printed == ["True None"]
    assert treated.did("fused") == ["AdamW(fused=True)"] and treated.did("foreach") == []
    assert treated.why("foreach") == [
        "AdamW: fused=True is wanted as well, and torch takes only one of them"
    ]


def test_optimizer_without_the_argument_is_reported_when_it_steps(treat: Treat) -> None:
    treated = treat(
        "fused",
        """
        optimizer = torch.optim.Adadelta(model.parameters())
        train(DataLoader(data, 16), optimizer)
        """,
    )

    assert treated.why("fused") == ["Adadelta does not take fused=True"]


def test_parameters_that_no_fused_step_takes_leave_the_script_as_it_is(treat: Treat) -> None:
    treated = treat(
        "fused",
        """
        number = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
        optimizer = torch.optim.Adam(parameter for parameter in [number])
        number.abs().sum().backward()
        for _ in range(4): optimizer.step()
        print(optimizer.param_groups[0]["fused"], len(optimizer.param_groups[0]["params"]))
        """,
    )

    assert treated.printed == ["None 1"]
    assert treated.why("fused") == [
        "Adam: some of its parameters are no real floating-point numbers"
    ]


def test_error_of_the_script_stays_the_error_of_the_script(treat: Treat) -> None:
    """Torch refuses both calls: ours, and then that of the script."""
    treated = treat("fused", "sgd(weight_decay=-1)", fails=True)

    assert "ValueError: Invalid weight_decay value: -1" in treated.seen.done.stderr
    assert "During handling" not in treated.seen.done.stderr
    assert treated.reports == []


def test_arguments_that_torch_refuses_are_those_of_the_script_again(treat: Treat) -> None:
    treated = treat(
        "foreach",
        """
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
        print(optimizer.param_groups[0]["foreach"], len(optimizer.param_groups[0]["params"]))
        train(DataLoader(data, 16), optimizer)
        """,
    )

    assert treated.printed == ["None 4"] and len(treated.losses) == 12
    (why,) = treated.why("foreach")
    assert why.startswith("torch refused Adam(foreach=True): lr as a Tensor is not supported")


def test_gradients_are_given_back_where_the_script_fills_them(treat: Treat) -> None:
    script = """
        optimizer = sgd()
        train(DataLoader(data, 16), optimizer, clear=lambda: optimizer.zero_grad(set_to_none=False))
        optimizer.zero_grad(False)
        print([parameter.grad for parameter in model.parameters()])
        """
    plain = treat("", script)
    treated = treat("set-to-none", script)

    assert "tensor" in plain.printed[0]
    assert treated.printed == ["[None, None, None, None]"]
    assert treated.losses == plain.losses
    assert sum(report.count for report in treated.reports) == 13
    assert set(treated.did("set-to-none")) == {"SGD.zero_grad(set_to_none=True)"}


def test_default_of_zero_grad_is_already_set(treat: Treat) -> None:
    treated = treat("set-to-none", "train(DataLoader(data, 16), sgd())")

    assert treated.is_set("set-to-none") and treated.did("set-to-none") == []


def test_treatment_that_does_not_exist_is_reported(treat: Treat) -> None:
    treated = treat("warp=9,,fused", "train(DataLoader(data, 16), sgd())")

    assert treated.why("warp=9") == ["this version of tuilab has no such treatment"]
    assert treated.did("fused") == ["SGD(fused=True)"]


def test_value_that_is_no_number_is_reported_and_harms_nothing(treat: Treat) -> None:
    treated = treat(
        "threads=many,workers=many,ddp-bucket=wide,ideal-loader=9.5,gc-freeze",
        "train(DataLoader(data, 16), sgd())",
    )

    assert len(treated.losses) == 12
    for name in ("threads=many", "workers=many", "ideal-loader=9.5", "ddp-bucket=wide"):
        assert treated.why(name)[0].startswith("tuilab could not apply it: ValueError: ")
    assert treated.did("gc-freeze")


def test_script_whose_folder_is_gone_is_treated(treat: Treat) -> None:
    """Its code has a relative path, which belongs to no place any more."""
    treated = treat(
        "fused,workers=0",
        """
        import tempfile
        code = compile("optimizer = sgd()", "relative.py", "exec")
        with tempfile.TemporaryDirectory() as folder: os.chdir(folder)
        exec(code)
        train(DataLoader(data, 16), optimizer)
        """,
    )

    assert treated.did("fused") == ["SGD(fused=True)"] and len(treated.losses) == 12


def test_signatures_stay_those_of_torch(treat: Treat) -> None:
    treated = treat(
        "workers=2,fused,set-to-none,ddp-view,threads=1",
        """
        import inspect
        for function in (DataLoader, torch.optim.AdamW, torch.optim.Optimizer.zero_grad):
            print(list(inspect.signature(function).parameters)[1])
        """,
    )

    assert treated.printed == ["batch_size", "lr", "set_to_none"]
