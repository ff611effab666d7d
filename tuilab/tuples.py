"""NamedTuple, as typing has it: that takes longer to load than `tuilab list` may take."""

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Maker(type):
        """Makes of a class with fields a tuple that has them by name, with what else stands in the class."""

        def __new__(cls, name, bases, body):
            plain = type(name, (), body)
            fields = plain.__annotations__
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in vars(plain).items():
                if key not in fields and key not in _ITS_OWN:
                    setattr(made, key, value)
            made.__annotations__ = fields
            return made

    _ITS_OWN = {"__dict__", "__weakref__", "__module__", "__annotations__", "__annotate_func__", "__annotations_cache__"}
    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
