"""The mechanical check of a scenario: tells its author what is missing, one sentence a finding."""

import ast
import re
from collections.abc import Iterator

from tuilab.catalogue.check_claims import check_answer, check_claims, check_refuted
from tuilab.catalogue.checked_file import CheckedFile, CheckFinding
from tuilab.catalogue.params import option_of
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import (
    Broken,
    called_method,
    lab_calls,
    lab_name,
    literal_text,
    parse_source,
    race_arms,
    read_text,
)
from tuilab.catalogue.stated_claims import SECTIONS
from tuilab.probes.settings import VARIABLES
from tuilab.text.display import show

_ERROR_LINE = re.compile(r"line (\d+): (.*)", re.DOTALL)
_QUESTION = re.compile(
    r"\b(?:how (?!do|does|did|is|are|can|will|would|to)\w+|what|which|[0-9]+)\b[^?]{0,300}\?",
    re.IGNORECASE,
)
_STRAY = re.compile(
    r"[0-9]\.\.[0-9]|\(quick"
)  # what should have been read as a range or a quick value


def check(scenario: Scenario) -> list[CheckFinding]:
    """Return what is missing in a scenario, from top to bottom."""
    try:
        if scenario.error:
            raise Broken(scenario.error)
        text = read_text(scenario.path)
        tree, run = parse_source(text)
    except Broken as problem:
        found = _ERROR_LINE.fullmatch(str(problem))
        return [CheckFinding(int(found[1]), found[2]) if found else CheckFinding(1, str(problem))]
    file = CheckedFile(scenario, text, tree, run, tuple(ast.walk(tree)))
    return sorted({finding for check in _CHECKS for finding in check(file)})


def _check_sections(file: CheckedFile) -> Iterator[CheckFinding]:
    sections = file.scenario.sections
    for name in SECTIONS:
        if not sections.get(name):
            yield CheckFinding(1, f"the section ## {name} is missing or empty; write it")
    if sections.get("Predict") and not _QUESTION.search(sections["Predict"]):
        yield CheckFinding(
            file.line_of("## Predict"),
            'Predict has no question with a number as its answer; ask "How many times ...?"',
        )
    names = [param.name for param in file.scenario.params]
    if sections.get("Try next") and not any(
        _mentions(sections["Try next"], name) for name in names
    ):
        given = (
            f"; write --{_spell(names[0])} or another" if names else "; run has none, so add one"
        )
        yield CheckFinding(
            file.line_of("## Try next"), f"Try next names no parameter of run{given}"
        )


def _check_settings(file: CheckedFile) -> Iterator[CheckFinding]:
    """What is advised is a variable that programs read, and was chosen among values."""
    for call in file.calls("advise"):
        name = literal_text(call)
        if name is None:
            yield CheckFinding(
                call.lineno,
                "the name of the advised variable is not a literal; write it as a literal string",
            )
        elif name not in VARIABLES:
            what = f"{show(name, 60)} is not a known setting of threads, allocators or pinning"
            yield CheckFinding(call.lineno, f"{what}; name one, for example OMP_NUM_THREADS")


def _check_params(file: CheckedFile) -> Iterator[CheckFinding]:
    arguments = file.run.args
    lines = {
        argument.arg: argument.lineno
        for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    }
    for param in (param for param in file.scenario.params if param.name in lines):
        if not param.label:
            yield CheckFinding(
                lines[param.name], f"{param.name} has no label; describe it in a comment after it"
            )
        if _STRAY.search(param.label):
            yield CheckFinding(
                lines[param.name],
                f"the comment of {param.name} has an unclear range or quick value; end it for example with 1..100 (quick 5)",
            )
        if option_of(param.name) != f"--{_spell(param.name)}":
            yield CheckFinding(
                lines[param.name],
                f"{param.name} is an option of tuilab run itself; choose another name",
            )


def _check_signature(file: CheckedFile) -> Iterator[CheckFinding]:
    if not (file.run.args.posonlyargs + file.run.args.args)[0].annotation:
        yield CheckFinding(
            file.run.lineno, f"{lab_name(file.run)} has no type; write {lab_name(file.run)}: Lab"
        )
    if not file.run.returns:
        yield CheckFinding(file.run.lineno, "run has no return type; write -> None")


def _check_shown(file: CheckedFile) -> Iterator[CheckFinding]:
    if not file.calls("claim", "claim_ratio"):
        yield CheckFinding(
            file.run.lineno, "the scenario makes no claim; add lab.claim or lab.claim_ratio"
        )
    timelines = [
        word for call in file.calls("memory") for word in call.keywords if word.arg == "timeline"
    ]
    if not file.calls("log", "image") and not timelines:
        yield CheckFinding(
            file.run.lineno,
            "the scenario draws no curve and no picture; add lab.log, lab.image or lab.memory(timeline=True)",
        )


def _check_cuda(file: CheckedFile) -> Iterator[CheckFinding]:
    for node in file.nodes:
        if isinstance(node, ast.expr | ast.stmt) and _is_cuda(node):
            yield CheckFinding(
                node.lineno,
                "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)",
            )


def _is_cuda(node: ast.AST) -> bool:
    names: list[str] = []
    match node:
        case ast.Attribute(value=ast.Name(id="torch"), attr="cuda"):
            return True
        case ast.Import():
            names = [alias.name for alias in node.names]
        case ast.ImportFrom():
            names = [f"{node.module}.{alias.name}" for alias in node.names]
    return any(f"{name}.".startswith("torch.cuda.") for name in names)


def _check_arms(file: CheckedFile) -> Iterator[CheckFinding]:
    """Arms are functions of the same shape; how many parameters they take is what can be seen."""
    functions = {node.name: node for node in file.nodes if isinstance(node, ast.FunctionDef)}
    for call in file.calls("race"):
        called = {
            arm: functions[name]
            for arm, node in race_arms(call).items()
            if (name := _called(node)) in functions
        }
        counts = {arm: _count_params(function) for arm, function in called.items()}
        if len(set(counts.values())) > 1:
            shape = ", ".join(f"{arm} {count}" for arm, count in counts.items())
            yield CheckFinding(
                call.lineno,
                f"the arms take different numbers of parameters ({shape}); give them the same shape",
            )


def _check_once(file: CheckedFile) -> Iterator[CheckFinding]:
    """What runs in the first repeat only is a function below `@lab.once`; it takes no times, and nobody hands it anything."""
    mark = f"{lab_name(file.run)}.once"
    blocks = [
        item.context_expr
        for node in file.nodes
        if isinstance(node, ast.With)
        for item in node.items
    ]
    bare = [call for call in file.calls("once") if not call.args]
    for line in sorted(
        {
            *(block.lineno for block in blocks if ast.unparse(block) == mark),
            *(call.lineno for call in bare),
        }
    ):
        yield CheckFinding(
            line, f"{mark} is a decorator; write @{mark} above a function, without parentheses"
        )
    for part in file.parts_once():
        if _count_params(part):
            yield CheckFinding(
                part.lineno,
                f"{part.name} runs right where it is defined, so it takes no parameters; use the names of run inside it",
            )
        for call in lab_calls(part, lab_name(file.run), "race", "claim_ratio"):
            yield CheckFinding(
                call.lineno,
                f"lab.{called_method(call)} cannot be called in a part that runs once; call it after that part",
            )


def _mentions(text: str, name: str) -> bool:
    return any(
        re.search(rf"(?:--(?:no-)?|`){re.escape(word)}\b", text) for word in (name, _spell(name))
    )


def _spell(name: str) -> str:
    return name.replace("_", "-")


def _check_factories(file: CheckedFile) -> Iterator[CheckFinding]:
    """An arm that makes a function is a factory, and the race has to know: else the making is what is timed."""
    for call in file.calls("race"):
        if any(keyword.arg in ("factories", None) for keyword in call.keywords):
            continue
        for arm, node in race_arms(call).items():
            if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Lambda):
                yield CheckFinding(
                    call.lineno,
                    f"{arm} returns a function, so only its creation is timed; add factories=True",
                )


def _called(arm: ast.expr) -> str:
    """Return the function that an arm is, or that its lambda calls; of a factory, that of what it makes."""
    match arm:
        case ast.Name(id=name) | ast.Lambda(body=ast.Call(func=ast.Name(id=name))):
            return name
        case ast.Lambda(body=ast.Lambda() as made):
            return _called(made)
    return ""


def _count_params(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)


_CHECKS = (
    _check_sections, check_claims, check_refuted, check_answer, _check_settings, _check_params,
    _check_signature, _check_shown, _check_cuda, _check_arms, _check_factories, _check_once,
)  # fmt: skip
