"""What stands in a source, found in one walk: to walk its tree takes longer than to make it."""

import ast
from functools import lru_cache

# Fields that hold words, or signs such as Load and Add, of which there are as many as of all else.
_WORDS = frozenset(["arg", "attr", "conversion", "id", "is_async", "kind", "level", "module", "simple", "type_comment"])
_SIGNS = frozenset(["ctx", "op", "ops"])


class _Inner(dict[type, tuple[str, ...]]):
    """By the class of a node the fields in which others may stand; none of what is no node, such as a name."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields = tuple(name for name in getattr(kind, "_fields", ()) if name not in _WORDS and name not in _SIGNS)
        return self.setdefault(kind, fields)


_INNER = _Inner({ast.Constant: ()})


@lru_cache(maxsize=2)  # a tree is asked for one thing after another
def nodes(tree: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields of a tree, in its order, but signs; what is no node may stand between."""
    found = [tree]
    for node in found:
        for name in _INNER[node.__class__]:
            value = getattr(node, name)
            if value.__class__ is list:
                found += value
            elif value is not None:
                found.append(value)
    return found
