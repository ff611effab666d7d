"""What a spare worker does before it has an order: the slow beginning of every run, done ahead."""


def warm_up() -> None:
    """Load torch and the lab, and take one step of an optimizer: the first one loads a second's worth of modules.

    A scenario must not be able to tell: what is set here its own first step would set. So no random number is drawn, CUDA is
    not touched, and there is no backward pass: it would ask the driver for its devices and start a thread for each, to save
    half a millisecond.
    """
    import torch

    import tuilab.lab.lab  # noqa: F401

    weight = torch.zeros(2, requires_grad=True)
    weight.grad = torch.zeros(2)
    torch.optim.Adam([weight]).step()
