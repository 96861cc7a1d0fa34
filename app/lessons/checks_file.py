"""Finds the checks of exercises in ``checks.py`` by parsing the file, which the application never runs.

So the arguments of ``@check`` must be literals. Their translations are in ``checks.ko.toml`` and ``checks.zh.toml``,
which map English sentences to translations.
"""

from __future__ import annotations

import ast
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
    """What the checks may say to a learner, as far as it is literal: names, hints, diagnoses. With the line of each."""

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
            if check is not None:
                reader.checks.append(check)
    return bool(decorators)


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


def _sentences(tree: ast.Module, checks: list[DeclaredName]) -> Iterator[tuple[str, int]]:
    for check in checks:
        yield from ((sentence, check.line) for sentence in (check.name, *check.hints))
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        said: list[ast.expr | None] = []
        if isinstance(call.func, ast.Name | ast.Attribute):
            called = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
            said += call.args[:1] if called == "fail" else []
        for keyword in call.keywords:
            said += keyword.value.keys if keyword.arg == "mistakes" and isinstance(keyword.value, ast.Dict) else []
        for node in said:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, node.lineno


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
