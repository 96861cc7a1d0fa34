"""Finds the checks of exercises in ``checks.py`` by parsing the file, which the application never runs.

So the arguments of ``@check`` must be literals. Their translations are in ``checks.ko.toml`` and ``checks.zh.toml``,
which map English sentences to translations.
"""

from __future__ import annotations

import ast
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.lessons.directives import LessonError
from runners.wire.protocol import MAX_CODE_BYTES

MAX_CHECK_NAME_LENGTH = 120
MAX_CHECK_XP = 100
MAX_HINTS = 10
_MAX_HINT_LENGTH = 1000
_EXAMPLE = '@check("cell-name", "What is true", xp=10, hints=["…"])'
API = (
    "CheckFailed",
    "DeclaredCheck",
    "Graph",
    "InProcessWork",
    "NotPlainData",
    "PlainData",
    "Work",
    "check",
    "close",
    "equal",
    "fail",
    "names_behind",
    "untouched",
)
"""What ``runners.checks`` has, which the application never imports."""


@dataclass(frozen=True, slots=True)
class DeclaredName:
    """A check declared in ``checks.py``. ``line`` is its decorator's line, from 1."""

    exercise: str
    name: str
    xp: int
    hints: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ChecksFile:
    """The checks in a ``checks.py``, and its errors."""

    source: str = ""
    checks: tuple[DeclaredName, ...] = ()
    faults: tuple[LessonError, ...] = ()
    sentences: Mapping[str, int] = field(default_factory=dict)
    """What the checks may say to a learner, as far as it is literal: names, hints, diagnoses, also by way of variables
    and helper functions. With the line of each."""

    def of(self, exercise: str) -> tuple[DeclaredName, ...]:
        """The checks of an exercise, in the order of the file."""
        return tuple(check for check in self.checks if check.exercise == exercise)


@dataclass(slots=True)
class _Reader:
    checks: list[DeclaredName] = field(default_factory=list)
    faults: list[LessonError] = field(default_factory=list)


def parse_checks(source: str) -> ChecksFile:
    """Parse the text of a ``checks.py`` without running it. Never raises, whatever the text."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        fault = LessonError(1, f"the file has {size:,} bytes, and the limit is {MAX_CODE_BYTES:,}; shorten it")
        return ChecksFile(source, faults=(fault,))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(tree, "checks.py", "exec", dont_inherit=True)
    except SyntaxError as e:
        fault = LessonError(max(e.lineno or 1, 1), f"this is not Python: {e.msg}; correct it")
        return ChecksFile(source, faults=(fault,))
    except (ValueError, OverflowError, RecursionError, MemoryError) as e:
        return ChecksFile(source, faults=(LessonError(1, f"this is not Python: {e or 'too deeply nested'}"),))
    reader = _Reader()
    functions: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            declared = _read_definition(node, reader)
            if node.name in functions:  # the later one would silently replace a check
                text = f"'{node.name}' is already defined on line {functions[node.name]}; give this one another name"
                reader.faults.append(LessonError(node.lineno, text))
            if declared or node.name in functions:
                functions[node.name] = node.lineno
    reader.faults += _misplaced_checks(tree)
    reader.faults += _import_errors(tree)
    reader.faults += _repeated_names(reader.checks)
    return ChecksFile(source, tuple(reader.checks), tuple(reader.faults), dict(_sentences(tree, reader.checks)))


def _read_definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, reader: _Reader) -> bool:
    decorators = [one for one in node.decorator_list if _is_check(one)]
    for decorator in decorators:
        if not isinstance(node, ast.FunctionDef):
            reader.faults.append(LessonError(decorator.lineno, "@check belongs above a plain function; write def"))
        elif len(decorators) > 1:
            reader.faults.append(LessonError(decorator.lineno, "a function can be one check; write a second function"))
        elif not isinstance(decorator, ast.Call):
            reader.faults.append(LessonError(decorator.lineno, f"@check needs arguments; write {_EXAMPLE}"))
        else:
            check = _read_call(decorator, reader.faults)
            if not _takes_one_argument(node.args):
                text = f"a check takes one argument; write def {node.name}(work)"
                reader.faults.append(LessonError(node.lineno, text))
            elif check is not None:
                reader.checks.append(check)
    return bool(decorators)


def _takes_one_argument(arguments: ast.arguments) -> bool:
    return len(arguments.posonlyargs + arguments.args) == 1 and not (
        arguments.vararg or arguments.kwonlyargs or arguments.kwarg
    )


def _is_check(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(called, ast.Name) and called.id == "check") or (
        isinstance(called, ast.Attribute) and called.attr == "check"
    )


def _read_call(call: ast.Call, faults: list[LessonError]) -> DeclaredName | None:
    written: dict[str, ast.expr] = dict(zip(("exercise", "name"), call.args, strict=False))
    before = len(faults)
    if len(call.args) > 2:
        faults.append(LessonError(call.args[2].lineno, f"@check has too many arguments; write {_EXAMPLE}"))
    for keyword in call.keywords:
        if keyword.arg not in ("exercise", "name", "xp", "hints"):
            what = f"'{keyword.arg}'" if keyword.arg else "'**'"
            faults.append(LessonError(keyword.value.lineno, f"@check has no argument {what}; write {_EXAMPLE}"))
        else:
            written[keyword.arg] = keyword.value
    values: dict[str, object] = {}
    for key, node in written.items():
        try:
            values[key] = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            text = f"'{key}' of @check must be a literal, because Lockstep reads it without running the file"
            faults.append(LessonError(node.lineno, f"{text}; write the value itself"))
    if len(faults) > before:
        return None
    faults += [
        LessonError(written[key].lineno if key in written else call.lineno, text) for key, text in _value_errors(values)
    ]
    if len(faults) > before:
        return None
    hints = values.get("hints", ())
    assert isinstance(hints, list | tuple)
    return DeclaredName(
        str(values["exercise"]), str(values["name"]), int(str(values.get("xp", 0))), tuple(hints), call.lineno
    )


def _value_errors(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The invalid arguments, and what is wrong with each."""
    exercise, name, xp, hints = (values.get(key) for key in ("exercise", "name", "xp", "hints"))
    if not isinstance(exercise, str) or not exercise:
        yield "exercise", f"@check needs the name of the exercise's cell first; write {_EXAMPLE}"
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_CHECK_NAME_LENGTH or "\n" in name:
        yield "name", f"a check needs a name of one line and at most {MAX_CHECK_NAME_LENGTH} characters"
    if "xp" in values and (type(xp) is not int or not 0 <= xp <= MAX_CHECK_XP):
        yield "xp", f"'xp' must be a whole number from 0 to {MAX_CHECK_XP}"
    if "hints" in values and not (
        isinstance(hints, list | tuple)
        and len(hints) <= MAX_HINTS
        and all(isinstance(hint, str) and 0 < len(hint.strip()) <= _MAX_HINT_LENGTH for hint in hints)
    ):
        rule = f"up to {MAX_HINTS} strings of at most {_MAX_HINT_LENGTH:,} characters"
        yield "hints", f"'hints' must be a list of {rule}; write it as [\"What do you divide by?\"]"


def _misplaced_checks(tree: ast.Module) -> Iterator[LessonError]:
    """Yield errors for checks that are not at the top level of the module, where the judge would not find them."""
    for node in ast.walk(tree):
        if node in tree.body or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in filter(_is_check, node.decorator_list):
            yield LessonError(decorator.lineno, "a check cannot be inside another block; move it to the left margin")


def _import_errors(tree: ast.Module) -> Iterator[LessonError]:
    """Yield errors for imports that fail in the judge."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = ["." * node.level + (node.module or "")]
        else:
            continue
        for module in modules:
            package = module.partition(".")[0]
            ours = f"{module}.".startswith("runners.checks.")
            if not ours and package != "numpy" and package not in sys.stdlib_module_names:
                text = f"checks cannot import '{module[:60]}'; use NumPy, the standard library and runners.checks"
                yield LessonError(node.lineno, text)
        if isinstance(node, ast.ImportFrom) and modules == ["runners.checks"]:
            for alias in node.names:
                if alias.name not in (*API, "*"):
                    text = f"runners.checks has no '{alias.name[:60]}'; it has {', '.join(API)}"
                    yield LessonError(alias.lineno, text)


def _sentences(tree: ast.Module, checks: list[DeclaredName]) -> Iterator[tuple[str, int]]:
    for check in checks:
        yield from ((sentence, check.line) for sentence in (check.name, *check.hints))
    said = _SaidSentences(tree)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            if _called(call) == "fail":
                yield from (found for node in call.args[:1] for found in said.texts(node))
            for keyword in call.keywords:
                yield from said.keys(keyword.value) if keyword.arg == "mistakes" else ()


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


class _SaidSentences:
    """Follows what is said back to literals: through variables, and into and out of functions."""

    def __init__(self, tree: ast.Module) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        """What variables and parameters may be, and what functions return."""
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for function in functions.values():
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value:
                    self._note(function.name, node.value)
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[target], value=value):
                    self._note_assignment(target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._note_assignment(target, value)
                case ast.Call(func=ast.Name(id=name)) if name in functions:
                    parameters = functions[name].args
                    for parameter, argument in zip(parameters.posonlyargs + parameters.args, node.args, strict=False):
                        self._note(parameter.arg, argument)
                    for keyword in node.keywords:
                        self._note(keyword.arg or "", keyword.value)

    def _note(self, name: str, value: ast.expr) -> None:
        self._values.setdefault(name, []).append(value)

    def _note_assignment(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self._note(name, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._note_assignment(part, value)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                self._note(name, ast.Dict([key], [value]))

    def texts(self, node: ast.expr | None, seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
        """The texts that an expression may be, with their lines."""
        match node:
            case ast.Constant(value=str(text)) if text.strip():
                yield text, node.lineno
            case ast.IfExp(body=one, orelse=other):
                yield from self.texts(one, seen)
                yield from self.texts(other, seen)
            case ast.Name(id=name) if name not in seen:
                for value in self._values.get(name, []):
                    yield from self.texts(value, seen | {name})

    def keys(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
        """The keys that a dict may have."""
        parts: list[ast.expr] = []
        match node:
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    yield from self.texts(key, seen) if key else self.keys(value, seen)
            case ast.DictComp(generators=[generator]):
                parts = [generator.iter]
            case ast.Call(func=ast.Attribute(attr="items", value=part)) | ast.Subscript(value=part):
                parts = [part]
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                parts = [one, other]
            case ast.Tuple(elts=parts):
                pass
            case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name not in seen:
                parts, seen = self._values.get(name, []), seen | {name}
        for part in parts:
            yield from self.keys(part, seen)


def _repeated_names(checks: list[DeclaredName]) -> Iterator[LessonError]:
    seen: dict[tuple[str, str], int] = {}
    for check in checks:
        first = seen.setdefault((check.exercise, check.name), check.line)
        if first != check.line:
            text = f"'{check.exercise}' already has a check named {check.name!r} on line {first}"
            yield LessonError(check.line, f"{text}; give this one another name")


def parse_translations(source: str) -> tuple[dict[str, str], list[LessonError]]:
    """Parse the text of a ``checks.ko.toml``: English sentences and their translations."""
    try:
        table = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        line = int(getattr(e, "lineno", 0) or _line_in(str(e)))
        return {}, [LessonError(line, f'the file is not TOML: {e}; write lines such as "English" = "translation"')]
    faults = [
        LessonError(_line_of(source, key), f"the translation of {key[:60]!r} must be a string in quotation marks")
        for key, value in table.items()
        if not isinstance(value, str) or not value.strip()
    ]
    return {key: value for key, value in table.items() if isinstance(value, str)}, faults


def _line_in(message: str) -> int:
    _, _, behind = message.partition("at line ")
    number = behind.split(",")[0].split(")")[0]
    return int(number) if number.isdigit() else 1


def _line_of(source: str, key: str) -> int:
    return next((number for number, line in enumerate(source.split("\n"), 1) if key in line), 1)
