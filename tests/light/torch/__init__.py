"""A stand-in for torch: loading the real one takes seconds of a core, and the engine never looks at a tensor."""


class _Anything(type):
    def __call__(cls) -> None:
        raise NotImplementedError("this torch is a stand-in")

    def __getattr__(cls, name: str) -> "type":
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_Anything):
    """Has every attribute; is the type of nothing."""


class device:
    """The processor, as a race between processes has it: by name."""

    def __init__(self, name: str) -> None:
        self.type = name


def set_num_threads(number: int) -> None: ...


def manual_seed(seed: int) -> None: ...


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything
