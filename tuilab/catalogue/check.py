"""Check a scenario and report to its author, one sentence a finding, what is missing."""

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
# A range or a quick value that is left in a label was not understood as one.
_STRAY = re.compile(r"[0-9]\.\.[0-9]|\(quick")


def check(scenario: Scenario) -> list[CheckFinding]:
    """Return what is missing in a scenario, from top to bottom.

    If the file cannot be read or parsed, that is the only finding.
    """
    try:
        if scenario.error:
            raise Broken(scenario.error)
        text = read_text(scenario.path)
        tree, run = parse_source(text)
    except Broken as problem:
        reason = str(problem)
        if match := _ERROR_LINE.fullmatch(reason):
            return [CheckFinding(int(match[1]), match[2])]
        return [CheckFinding(1, reason)]
    file = CheckedFile(scenario, text, tree, run, tuple(ast.walk(tree)))
    findings: set[CheckFinding] = set()
    for check_part in _CHECKS:
        findings.update(check_part(file))
    return sorted(findings)


# ---- the lesson


def _check_sections(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that no section is missing, and that Predict and Try next have their content.

    Predict needs a question with a number, and Try next a parameter of `run`.
    """
    sections = file.scenario.sections
    for name in SECTIONS:
        if not sections.get(name):
            yield CheckFinding(1, f"the section ## {name} is missing or empty; write it")
    predict = sections.get("Predict")
    if predict and not _QUESTION.search(predict):
        yield CheckFinding(
            file.line_of("## Predict"),
            'Predict has no question with a number as its answer; ask "How many times ...?"',
        )
    try_next = sections.get("Try next")
    names = [param.name for param in file.scenario.params]
    if try_next and not any(_mentions(try_next, name) for name in names):
        advice = "; run has none, so add one"
        if names:
            advice = f"; write --{_option_name(names[0])} or another"
        yield CheckFinding(
            file.line_of("## Try next"), f"Try next names no parameter of run{advice}"
        )


def _mentions(text: str, name: str) -> bool:
    """Return whether a text names a parameter, as an option or in backticks."""
    for word in (name, _option_name(name)):
        if re.search(rf"(?:--(?:no-)?|`){re.escape(word)}\b", text):
            return True
    return False


def _option_name(param_name: str) -> str:
    return param_name.replace("_", "-")


# ---- the function run


def _check_params(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that each parameter has a label, a clear range, and an option of its own."""
    arguments = file.run.args
    lines = {}
    for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
        lines[argument.arg] = argument.lineno
    for param in file.scenario.params:
        line = lines.get(param.name)
        if line is None:  # the common parameter device, which run does not have
            continue
        if not param.label:
            yield CheckFinding(
                line, f"{param.name} has no label; describe it in a comment after it"
            )
        if _STRAY.search(param.label):
            yield CheckFinding(
                line,
                f"the comment of {param.name} has an unclear range or quick value; "
                "end it for example with 1..100 (quick 5)",
            )
        if option_of(param.name) != f"--{_option_name(param.name)}":
            yield CheckFinding(
                line, f"{param.name} is an option of tuilab run itself; choose another name"
            )


def _check_signature(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that `run` has a type for the lab and a return type."""
    arguments = file.run.args
    first = (arguments.posonlyargs + arguments.args)[0]
    if not first.annotation:
        yield CheckFinding(file.run.lineno, f"{first.arg} has no type; write {first.arg}: Lab")
    if not file.run.returns:
        yield CheckFinding(file.run.lineno, "run has no return type; write -> None")


def _check_shown(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that the scenario claims something, and that it shows a curve or a picture."""
    if not file.calls("claim", "claim_ratio"):
        yield CheckFinding(
            file.run.lineno, "the scenario makes no claim; add lab.claim or lab.claim_ratio"
        )
    if not file.calls("log", "image") and not file.calls_with("timeline", "memory"):
        yield CheckFinding(
            file.run.lineno,
            "the scenario draws no curve and no picture; "
            "add lab.log, lab.image or lab.memory(timeline=True)",
        )


# ---- calls


def _check_settings(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that a scenario advises a value only for variables that programs read."""
    for call in file.calls("advise"):
        name = literal_text(call)
        if name is None:
            yield CheckFinding(
                call.lineno,
                "the name of the advised variable is not a literal; write it as a literal string",
            )
        elif name not in VARIABLES:
            yield CheckFinding(
                call.lineno,
                f"{show(name, 60)} is not a known setting of threads, allocators or pinning; "
                "name one, for example OMP_NUM_THREADS",
            )


def _check_cuda(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that nothing uses `torch.cuda`, because a scenario may run on another device."""
    for node in file.nodes:
        if isinstance(node, ast.expr | ast.stmt) and _is_cuda(node):
            yield CheckFinding(
                node.lineno,
                "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)",
            )


def _is_cuda(node: ast.AST) -> bool:
    """Return whether a node names `torch.cuda`, or imports it or a part of it."""
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
    """Check that the arms of a race take the same number of parameters."""
    functions = {node.name: node for node in file.nodes if isinstance(node, ast.FunctionDef)}
    for call in file.calls("race"):
        counts = {}
        for arm, node in race_arms(call).items():
            function = functions.get(_called_function(node))
            if function:
                counts[arm] = _count_params(function)
        if len(set(counts.values())) > 1:
            shape = ", ".join(f"{arm} {count}" for arm, count in counts.items())
            yield CheckFinding(
                call.lineno,
                f"the arms take different numbers of parameters ({shape}); "
                "give them the same shape",
            )


def _called_function(arm: ast.expr) -> str:
    """Return the function that an arm is, or that its lambda calls; empty if it is another thing.

    For a factory, it is the function of the lambda that the factory returns.
    """
    match arm:
        case ast.Name(id=name) | ast.Lambda(body=ast.Call(func=ast.Name(id=name))):
            return name
        case ast.Lambda(body=ast.Lambda() as returned):
            return _called_function(returned)
    return ""


def _count_params(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)


def _check_factories(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that a race with an arm that returns a function says so with `factories`.

    Otherwise the race would time only how long it takes to create the function.
    """
    for call in file.calls("race"):
        if any(keyword.arg in ("factories", None) for keyword in call.keywords):
            continue
        for arm, node in race_arms(call).items():
            if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Lambda):
                yield CheckFinding(
                    call.lineno,
                    f"{arm} returns a function, so only its creation is timed; add factories=True",
                )


def _check_once(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check the parts that run in the first repeat only: functions below `@lab.once`.

    Such a part takes no parameters, and it neither times nor claims times.
    """
    mark = f"{lab_name(file.run)}.once"
    lines = {call.lineno for call in file.calls("once") if not call.args}
    for node in file.nodes:
        if isinstance(node, ast.With):
            for item in node.items:
                if ast.unparse(item.context_expr) == mark:
                    lines.add(item.context_expr.lineno)
    for line in sorted(lines):
        yield CheckFinding(
            line, f"{mark} is a decorator; write @{mark} above a function, without parentheses"
        )
    for part in _parts_once(file, mark):
        if _count_params(part):
            yield CheckFinding(
                part.lineno,
                f"{part.name} runs right where it is defined, so it takes no parameters; "
                "use the names of run inside it",
            )
        for call in lab_calls(part, lab_name(file.run), "race", "claim_ratio"):
            yield CheckFinding(
                call.lineno,
                f"lab.{called_method(call)} cannot be called in a part that runs once; "
                "call it after that part",
            )


def _parts_once(file: CheckedFile, mark: str) -> Iterator[ast.FunctionDef]:
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef) and mark in map(ast.unparse, node.decorator_list):
            yield node


_CHECKS = (
    _check_sections,
    check_claims,
    check_refuted,
    check_answer,
    _check_settings,
    _check_params,
    _check_signature,
    _check_shown,
    _check_cuda,
    _check_arms,
    _check_factories,
    _check_once,
)
