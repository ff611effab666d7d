"""Write a change to a script as a unified diff, if that is certainly safe.

An edit is made in the text of the script, so that comments and layout stay. Then the new text is
parsed, and its syntax tree must be the old tree with exactly this change. If it is not, there is no
diff, and the user gets the change in words. Nothing is ever written to a file of the user.
"""

import ast
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tuilab.commands.tune.planning.sources import ScriptSource
from tuilab.commands.tune.script_facts import ScriptPlace

_LONGEST_LINE = 2000  # characters; a longer line was not written by hand
_SAFE_IN_NAMES = frozenset(" _-+.,=@%/~")  # in the name of a file, in addition to letters


@dataclass(frozen=True, kw_only=True)
class CallEdit:
    """Set keywords of the call at a place in a file of the user."""

    place: ScriptPlace
    callee: str  # the name of the class, such as "DataLoader"
    keywords: Mapping[str, str]  # their values as Python expressions
    most_positional: int  # arguments without a keyword; a further one could be one of `keywords`
    excludes: tuple[str, ...] = ()  # keywords that must not be set as well

    @property
    def file(self) -> str:
        return self.place.file


@dataclass(frozen=True, kw_only=True)
class ZeroGradEdit:
    """Let all calls of zero_grad in a file set gradients to None."""

    file: str


@dataclass(frozen=True, kw_only=True)
class StatementEdit:
    """Add a statement below `import torch` in a file."""

    file: str
    statement: str


Edit = CallEdit | ZeroGradEdit | StatementEdit


class _Unsafe(Exception):
    """An edit cannot be made safely."""


@dataclass
class _Document:
    """A file while it is edited: its bytes, its syntax tree, and the replacements of bytes.

    Edits change the tree as well. The text with all replacements must then have this tree.
    """

    data: bytes
    tree: ast.Module
    line_starts: list[int]
    replacements: list[tuple[int, int, bytes]] = field(default_factory=list)

    def offset(self, line: int | None, column: int | None) -> int:
        """Return the position of a byte from its line and column in the syntax tree."""
        if line is None or column is None:
            raise _Unsafe
        return self.line_starts[line - 1] + column

    def start_of(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end_of(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)

    def insert(self, offset: int, text: str) -> None:
        self.replacements.append((offset, offset, text.encode()))

    def replace(self, node: ast.expr, text: str) -> None:
        self.replacements.append((self.start_of(node), self.end_of(node), text.encode()))

    def text(self) -> str:
        """Return the edited text."""
        data = self.data
        for begin, end, new in sorted(self.replacements, reverse=True):
            data = data[:begin] + new + data[end:]
        return data.decode()


def make_diff(edits: Iterable[Edit], sources: Mapping[str, ScriptSource]) -> str:
    """Return a unified diff of all edits, or an empty string if one of them is not safe.

    `patch -p0` and `git apply -p0` apply it in the folder in which the script runs.
    """
    edits_of_file: dict[str, list[Edit]] = {}
    for edit in edits:
        same_file = edits_of_file.setdefault(edit.file, [])
        if edit not in same_file:  # a call in a loop is in the facts several times
            same_file.append(edit)
    diffs = []
    try:
        for file, own_edits in edits_of_file.items():
            if file not in sources:
                return ""
            diffs.append(_diff_of(sources[file], own_edits))
    except (_Unsafe, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return "".join(diffs)


def _diff_of(source: ScriptSource, edits: Iterable[Edit]) -> str:
    """Return the diff of one file; raise an exception if an edit is not safe."""
    if not _is_safe_name(source.name):
        raise _Unsafe
    document = _parse(source.text)
    for edit in edits:
        if isinstance(edit, CallEdit):
            _edit_call(document, edit)
        elif isinstance(edit, ZeroGradEdit):
            _edit_zero_grads(document)
        else:
            _add_statement(document, edit.statement)
    new_text = document.text()
    if ast.dump(ast.parse(new_text)) != ast.dump(document.tree):
        raise _Unsafe
    return _unified(source.name, source.text, new_text)


def _is_safe_name(name: str) -> bool:
    """Return whether patch and git read this name of a file as it is."""
    has_safe_characters = all(letter.isalnum() or letter in _SAFE_IN_NAMES for letter in name)
    return has_safe_characters and name.isascii() and name.strip() == name and name != ""


def _parse(text: str) -> _Document:
    """Return a file for editing.

    Raises an exception if the positions in its syntax tree may not be those in the text.
    """
    if "\r" in text.replace("\r\n", "") or "\f" in text:
        raise _Unsafe
    lines = text.split("\n")
    if any(len(line) > _LONGEST_LINE for line in lines):
        raise _Unsafe
    line_starts = []
    start = 0
    for line in lines:
        line_starts.append(start)
        start += len(line.encode()) + 1
    return _Document(text.encode(), ast.parse(text), line_starts)


# ---- the edits


def _edit_call(document: _Document, edit: CallEdit) -> None:
    """Set the keywords of the only call that the edit can mean."""
    calls = []
    for node in ast.walk(document.tree):
        if isinstance(node, ast.Call) and _is_at(node, edit.place.line):
            if _is_call_of(node, edit.callee, document.tree):
                calls.append(node)
    if len(calls) != 1:
        raise _Unsafe
    call = calls[0]
    given = {keyword.arg: keyword for keyword in call.keywords}
    has_stars = None in given or any(isinstance(value, ast.Starred) for value in call.args)
    if has_stars or len(call.args) > edit.most_positional:
        raise _Unsafe
    if any(name in given for name in edit.excludes):
        raise _Unsafe
    end = _end_of_arguments(document, call)
    added = []
    for name, value in edit.keywords.items():
        new_value = ast.parse(value, mode="eval").body
        if name in given:
            document.replace(given[name].value, value)
            given[name].value = new_value
        else:
            added.append(f"{name}={value}")
            call.keywords.append(ast.keyword(name, new_value))
    new_arguments = ", ".join(added)
    if added and end:
        document.insert(end, f", {new_arguments}")
    elif added:
        document.insert(document.end_of(call) - 1, new_arguments)


def _end_of_arguments(document: _Document, call: ast.Call) -> int:
    """Return the position after the last argument of a call; 0 if it has none."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return max((document.end_of(value) for value in values), default=0)


def _is_at(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _is_call_of(call: ast.Call, name: str, tree: ast.Module) -> bool:
    """Return whether a call names this class, by its own name or by that of an import."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr == name
    if not isinstance(function, ast.Name):
        return False
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == function.id:
            return False  # a class or function of the script itself
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == name:
                    names.add(alias.asname or alias.name)
    return function.id in names


def _edit_zero_grads(document: _Document) -> None:
    """Replace set_to_none=False in all calls of zero_grad."""
    count = 0
    for node in ast.walk(document.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "zero_grad":
            continue
        if node.args and _is_false(node.args[0]):
            document.replace(node.args[0], "True")
            node.args[0] = ast.Constant(True)
            count += 1
        for keyword in node.keywords:
            if keyword.arg == "set_to_none" and _is_false(keyword.value):
                document.replace(keyword.value, "True")
                keyword.value = ast.Constant(True)
                count += 1
    if not count:
        raise _Unsafe


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _add_statement(document: _Document, statement: str) -> None:
    """Add an assignment below the first line `import torch` of a module.

    If the script mentions the variable already, it may set another value later.
    """
    variable, _, _ = statement.partition(" = ")
    if variable.removeprefix("torch.").encode() in document.data:
        raise _Unsafe
    for index, node in enumerate(document.tree.body):
        if not isinstance(node, ast.Import) or node.lineno != node.end_lineno:
            continue
        if not any(alias.name == "torch" and not alias.asname for alias in node.names):
            continue
        start = document.line_starts[node.lineno - 1]
        if node.lineno >= len(document.line_starts):
            raise _Unsafe  # the last line has no line break
        end = document.line_starts[node.lineno]
        line = document.data[start:end].decode()
        code, _, _ = line.partition("#")
        if ";" in code or node.col_offset:
            raise _Unsafe
        line_break = "\r\n" if line.endswith("\r\n") else "\n"
        document.insert(end, statement + line_break)
        document.tree.body[index + 1 : index + 1] = ast.parse(statement).body
        return
    raise _Unsafe


# ---- the text of the diff


def _unified(name: str, old_text: str, new_text: str) -> str:
    """Return the unified diff of a file, with its line breaks as they are."""
    # A name with spaces ends with a tab; otherwise patch takes its first word only.
    label = f"{name}\t" if " " in name else name
    lines = difflib.unified_diff(_lines_of(old_text), _lines_of(new_text), label, label)
    diff = []
    for line in lines:
        diff.append(line)
        if not line.endswith("\n"):
            diff.append("\n\\ No newline at end of file\n")
    return "".join(diff)


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text with their line breaks. `str.splitlines` knows too many breaks."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    if last:
        lines.append(last)
    return lines
