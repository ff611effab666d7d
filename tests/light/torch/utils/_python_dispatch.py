from torch import Anything as TorchDispatchMode  # noqa: F401
