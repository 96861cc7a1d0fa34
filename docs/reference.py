"""The parts of the site that are generated from the code: settings, commands, and the lesson format, as Markdown.

A page asks for one with a comment, ``<!-- generated: commands -->``, which ``conf.py`` replaces with the text.
The description of a setting, a key or an option is the docstring below it, so it is written once, next to the code.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
import yaml
from annotated_types import Ge, Le
from prometheus_client.metrics_core import Metric
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.cli.main import app as command_line
from app.lessons.directive_specs import DIRECTIVE_SPECS, DirectiveSpec
from app.lessons.front_matter import FrontMatter
from app.lessons.json_schema import course_schema
from app.lessons.model import CellTag
from app.lessons.roles import ROLES
from app.metrics import REGISTRY
from app.monitoring.site_metrics import SiteState, site_metrics
from app.secret_files import SECRET_SETTINGS
from app.settings import IdentityProviderSettings, Settings
from runners.config.settings import Bounds, Limits, RunnerSettings

PREFIX = "LOCKSTEP_"
_ALERTS = Path(__file__).parent / "operate" / "prometheus" / "alerts.yml"
_UNITS = {"s": "seconds", "mb": "MiB", "gb": "GiB", "bytes": "bytes", "days": "days"}
_COUNTED = ("connections", "runs", "comments", "visitors")
_MARKER = re.compile(r"^<!-- generated: ([a-z ]+) -->$", re.MULTILINE)


def fill(text: str) -> str:
    """Put what is generated in the place of the comments that ask for it."""
    return _MARKER.sub(lambda marker: PARTS[marker[1]](), text)


def attribute_docs(cls: type) -> dict[str, str]:
    """The docstrings below the attributes of a class, by attribute, as Markdown."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        target = statement.target if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [None])[0]
        said = following.value if isinstance(following, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(said, ast.Constant) and isinstance(said.value, str):
            found[target.id] = markdown(said.value)
    return found


def markdown(docstring: str) -> str:
    """A docstring's text on one line for each paragraph, with `code` as Markdown writes it."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(" ".join(paragraph.split()).replace("``", "`") for paragraph in paragraphs)


# --- settings ---------------------------------------------------------------------------------------------------


def variables(model: type[BaseModel], prefix: str = PREFIX) -> Iterator[tuple[str, str, FieldInfo]]:
    """The environment variable, the attribute and the definition of every setting of a class, nested ones left out."""
    for name, field in model.model_fields.items():
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            yield f"{prefix}{name.upper()}", name, field


def settings(model: type[BaseModel], prefix: str = PREFIX, without: Collection[str] = ()) -> str:
    """Every setting of a class with its default, what it may be, and what it means; but for attributes left out."""
    meanings = attribute_docs(model)
    entries = [
        f"````{{envvar}} {variable}\n{_facts(name, field)}\n\n{meanings[name]}{_file_variant(variable, name)}\n````"
        for variable, name, field in variables(model, prefix)
        if name not in without
    ]
    return "\n\n".join(entries)


def _file_variant(variable: str, name: str) -> str:
    """How a secret can be set by a file."""
    return f" It can come from a file, which `{variable}_FILE` names." if name in SECRET_SETTINGS else ""


def _facts(name: str, field: FieldInfo) -> str:
    values = _values(name, field)
    default = "required" if field.is_required() else f"Default: {_default(field.default)}"
    return f"{default}. Value: {values}." if values else f"{default}."


def _default(value: Any) -> str:
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int | float):
        return f"`{value:.12g}`"
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"`{value}`" if value else "empty"


def _values(name: str, field: FieldInfo) -> str:
    """What a value may be: the words to choose from, or the bounds of a number and what it counts."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(kind))
    if kind is bool:
        return "`0` or `1`"
    least, most, counted = bounds(name, field)
    return f"{least:,.12g} to {most:,.12g} {counted}" if most is not None else ""


def bounds(name: str, field: FieldInfo) -> tuple[float | None, float | None, str]:
    """The least and the greatest value of a number, and what it counts; ``None`` where there is no bound."""
    least: Any = None
    most: Any = None
    for rule in field.metadata:
        if isinstance(rule, Bounds):
            return rule.least, rule.most, rule.unit
        least = rule.ge if isinstance(rule, Ge) else least
        most = rule.le if isinstance(rule, Le) else most
    return least, most, unit(name)


def unit(name: str) -> str:
    """What the number of a setting counts, by its name: the unit it has, or else the things it names."""
    words = name.split("_")
    return next((_UNITS[word] for word in words if word in _UNITS), "") or next(
        (word for word in words if word in _COUNTED), ""
    )


# --- commands ---------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options."""
    return "\n\n".join(_commands(typer.main.get_command(command_line), "lockstep"))


def _commands(command: Any, name: str) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    if hasattr(command, "list_commands"):  # a group is known by having some: typer brings a click of its own
        for word in command.list_commands(context):
            yield from _commands(command.get_command(context, word), f"{name} {word}")
        return
    parameters = [each for each in command.get_params(context) if "--help" not in each.opts]
    arguments = [_declaration(each) for each in parameters if each.param_type_name == "argument"]
    options = ["[OPTIONS]"] if len(arguments) < len(parameters) else []
    usage = " ".join([name, *options, *arguments])
    rows = "".join(_parameter(each, context) for each in parameters)
    yield f"## `{name}`\n\n```sh\n{usage}\n```\n\n{markdown(command.help or '')}\n\n{rows}".rstrip()


def _parameter(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)  # the help, the default and the bounds in one
    about = markdown(record[1]) if record else ""
    return f"`{_declaration(parameter)}`\n: {about}\n\n" if about else ""


def _declaration(parameter: Any) -> str:
    """A parameter as it is typed, such as ``--port PORT``, ``--role learner|admin`` or ``[NAME]...``."""
    word = (parameter.metavar or parameter.name).strip("[]").upper()
    if parameter.param_type_name == "argument":
        word += "..." if parameter.nargs == -1 else ""
        return word if parameter.required else f"[{word}]"
    names = ", ".join(parameter.opts)
    if parameter.is_flag:
        return names
    choices = "|".join(getattr(parameter.type_descriptor.annotation, "_value2member_map_", ()))  # of an enum
    return f"{names} {choices or word}"


# --- lessons ----------------------------------------------------------------------------------------------------


def front_matter() -> str:
    """Every key of a lesson's front matter."""
    return _definitions(attribute_docs(FrontMatter))


def course_file() -> str:
    """Every key of ``course.toml``."""
    return _definitions({key: value["description"] for key, value in course_schema()["properties"].items()})


def directives() -> str:
    """Every directive with its argument, its options and what it becomes."""
    return "\n\n".join(_directive(name, shape) for name, shape in DIRECTIVE_SPECS.items())


def _directive(name: str, shape: DirectiveSpec) -> str:
    argument = f"{shape.argument_is} (optional)" if shape.argument == "optional" else shape.argument_is
    options = _definitions({f":{key}:": about for key, about in shape.options.items()})
    return f"### `{{{name}}}`\n\n{shape.about} Argument: {argument}.\n\n{options}".rstrip()


def tags() -> str:
    """Every tag that a cell may have."""
    meanings = attribute_docs(CellTag)
    return _definitions({str(tag): meanings[tag.name] for tag in CellTag})


def roles() -> str:
    """Every role."""
    return _definitions({f"{{{name}}}": about for name, about in ROLES.items()})


def _definitions(meanings: Mapping[str, str]) -> str:
    return "\n\n".join(f"`{name}`\n: {markdown(about)}" for name, about in meanings.items())


# --- metrics ----------------------------------------------------------------------------------------------------


def metrics() -> str:
    """Every metric with its type and its meaning."""
    families = [*REGISTRY.collect(), *site_metrics(SiteState())]
    rows = [f"| `{exposed_name(family)}` | {family.type} | {family.documentation} |" for family in families]
    return "\n".join(["| metric | type | what it is |", "|---|---|---|", *sorted(rows)])


def alerts() -> str:
    """Every alert, what it means, and what to do."""
    rules = [rule for group in yaml.safe_load(_ALERTS.read_text())["groups"] for rule in group["rules"]]
    rows = [
        f"| `{rule['alert']}` | {rule['labels']['severity']} | {rule['annotations']['summary']} "
        f"| {rule['annotations']['description']} |"
        for rule in rules
    ]
    return "\n".join(["| alert | severity | what has happened | what to do |", "|---|---|---|---|", *rows])


def exposed_name(family: Metric) -> str:
    """The name of a metric as Prometheus stores it."""
    return f"{family.name}_total" if family.type == "counter" else family.name


PARTS: Mapping[str, Callable[[], str]] = {
    "web settings": lambda: settings(Settings),
    "provider settings": lambda: settings(IdentityProviderSettings, f"{PREFIX}OIDC__NAME__"),
    "runner settings": lambda: settings(RunnerSettings, without=["data_dir"]),
    "limits": lambda: settings(Limits, f"{PREFIX}LIMITS__"),
    "commands": commands,
    "front matter": front_matter,
    "course file": course_file,
    "directives": directives,
    "tags": tags,
    "roles": roles,
    "metrics": metrics,
    "alerts": alerts,
}
"""What a page may ask for."""
