"""FastAPI with its routes in one list, and a path for the name of a route without asking every route in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.convertors import Convertor
from starlette.datastructures import URLPath
from starlette.routing import PARAM_FORMAT_REGEX, BaseRoute, NoMatchFound, Route


@dataclass(frozen=True, slots=True)
class _PathTemplate:
    """A path with holes in it: what stands before each hole, which part fills it, and what stands at the end."""

    holes: tuple[tuple[str, str, Convertor[Any]], ...]
    end: str

    @classmethod
    def of(cls, route: Route) -> _PathTemplate:
        """The one that leads to a route."""
        texts = PARAM_FORMAT_REGEX.split(route.path_format)
        names = texts[1::2]
        holes = zip(texts[::2], names, (route.param_convertors[name] for name in names), strict=False)
        return cls(tuple(holes), texts[-1])

    def filled(self, parts: dict[str, Any]) -> str:
        """The path. Raises KeyError for a part that is missing."""
        return "".join([before + convertor.to_string(parts[name]) for before, name, convertor in self.holes]) + self.end


class Application(FastAPI):
    """``routes`` are looked through in their order.

    Raises:
        ValueError: two of them have the same name.
    """

    def __init__(self, *, routes: Sequence[BaseRoute], **settings: Any) -> None:
        super().__init__(routes=list(routes), **settings)
        self._paths: dict[str, _PathTemplate] = {}
        for route in routes:
            if isinstance(route, Route):
                if route.name in self._paths:
                    raise ValueError(f"two routes have the name {route.name}")
                self._paths[route.name] = _PathTemplate.of(route)

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """The path of a route. Raises NoMatchFound if there is none of that name with those parts."""
        path = self._paths.get(name)
        if path is None:
            return super().url_path_for(name, **path_params)
        if len(path.holes) != len(path_params):
            raise NoMatchFound(name, path_params)
        try:
            return URLPath(path.filled(path_params))
        except KeyError as e:
            raise NoMatchFound(name, path_params) from e
