"""Textual finds handlers and styles by the names of classes, and reports nothing if a name is gone."""

import inspect
import re
from importlib import import_module
from typing import TypeVar

from textual.dom import DOMNode
from textual.message import Message

from tests.packages import MODULES

TYPE = re.compile(r"(?<![\w.#$:-])[A-Z]\w+")


Kind = TypeVar("Kind")


def subclasses(kind: type[Kind]) -> set[type[Kind]]:
    classes: set[type[Kind]] = set()
    for child in kind.__subclasses__():
        classes |= {child, *subclasses(child)}
    return classes


def own_nodes() -> set[type[DOMNode]]:
    for name in MODULES:
        if name.startswith("tuilab.tui"):
            import_module(name)
    return {node for node in subclasses(DOMNode) if node.__module__.startswith("tuilab.tui")}


def test_every_handler_belongs_to_a_message() -> None:
    nodes = own_nodes()
    handlers = {message.handler_name for message in subclasses(Message)}
    unknown = []
    for node in nodes:
        for name, _ in inspect.getmembers(node, inspect.isfunction):
            if name.startswith("on_") and name not in {*handlers, "on_event"}:
                unknown.append(f"{node.__name__}.{name}")

    assert unknown == []


def test_every_type_in_a_stylesheet_names_a_class() -> None:
    nodes = own_nodes()
    types = {node.__name__ for node in subclasses(DOMNode)}
    unknown = []
    for node in nodes:
        css = vars(node).get("DEFAULT_CSS", "")
        selectors = re.sub(r"[^{};]*;", "", css)
        for name in TYPE.findall(selectors):
            if name not in types:
                unknown.append(f"{node.__name__}: {name}")

    assert unknown == []
