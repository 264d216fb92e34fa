"""An extension of griffe, through which mkdocstrings reads the source for the reference."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import griffe

PAGE = re.compile(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?")


class Docstrings(griffe.Extension):
    """Our docstrings end with an "Example:", which griffe knows as "Examples:", and name pages, which become links."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called when an object is loaded."""
        if obj.docstring:
            text = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
            obj.docstring.value = PAGE.sub(_link, text)


def _link(found: re.Match[str]) -> str:
    """A page as a link of the reference pages."""
    page, anchor = found[1], found[2]
    words = (anchor or Path(page).stem).replace("-", " ")
    return f"[{words}](../{page}{f'#{anchor}' if anchor else ''})"


class AttrsSignatures(griffe.Extension):
    """Adds to each attrs class the ``__init__`` that attrs generates, which is not in the source."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called when the whole package is loaded, so that inherited members are known."""
        for one in list(_classes(pkg)):
            if _is_attrs(one) and "__init__" not in one.members:
                parameters = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
                for parent in [*reversed(one.mro()), one]:
                    if _is_attrs(parent):
                        parameters += [_parameter(field) for field in _fields(parent)]
                one.set_member(
                    "__init__", griffe.Function("__init__", parameters=griffe.Parameters(*_last(parameters)))
                )


def _classes(of: griffe.Module | griffe.Class) -> Any:
    for member in of.members.values():
        if not member.is_alias and member.is_module:
            yield from _classes(member)
        elif not member.is_alias and member.is_class:
            yield member


def _is_attrs(one: griffe.Class) -> bool:
    return any(str(decorator.value).startswith(("attrs.frozen", "attrs.define")) for decorator in one.decorators)


def _fields(one: griffe.Class) -> list[griffe.Attribute]:
    """The parameter that a typed attribute declares, unless it has ``init=False``."""
    return [
        member
        for member in one.members.values()
        if not member.is_alias and member.is_attribute and member.annotation is not None
        if "property" not in member.labels
        and "ClassVar" not in str(member.annotation)
        and "init=False" not in str(member.value)
    ]


def _parameter(field: griffe.Attribute) -> griffe.Parameter:
    value, default = str(field.value) if field.value is not None else None, None
    if value is not None:
        call = ast.parse(value, mode="eval").body
        given = {one.arg: ast.unparse(one.value) for one in call.keywords} if isinstance(call, ast.Call) else {}
        made = "..." if "factory" in given else None
        default = given.get("default", made) if isinstance(call, ast.Call) else value
    only = value is not None and "kw_only=True" in value
    kind = griffe.ParameterKind.keyword_only if only else griffe.ParameterKind.positional_or_keyword
    return griffe.Parameter(field.name.lstrip("_"), annotation=field.annotation, kind=kind, default=default)


def _last(parameters: list[griffe.Parameter]) -> list[griffe.Parameter]:
    """The last declaration of a field counts, at the position of the first; keyword-only fields come last."""
    by_name = {one.name: one for one in parameters}
    return sorted(by_name.values(), key=lambda one: one.kind is griffe.ParameterKind.keyword_only)
