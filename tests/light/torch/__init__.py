"""A stand-in for torch: loading the real one takes seconds of a core, and the engine never looks at a tensor."""

from typing import Any


class _Anything(type):
    def __call__(cls) -> None:
        raise NotImplementedError("this torch is a stand-in")

    def __getattr__(cls, name: str) -> "type":
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_Anything):
    """Has every attribute; is the type of nothing."""


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything


class zeros:
    """A tensor as far as the warm-up of a spare worker needs one."""

    def __init__(self, *size: int, **options: Any) -> None:
        self.grad: object = None


class optim:
    """The one optimizer that a warm-up takes a step of."""

    class Adam:
        def __init__(self, weights: list[zeros]) -> None:
            self.weights = weights

        def step(self) -> None:
            return None
