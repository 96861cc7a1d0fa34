"""FastAPI with its routes in one list, and reverse lookup of paths by route name without trying every route."""

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
    """A path with placeholders: the text before each placeholder, its parameter, and the text at the end."""

    holes: tuple[tuple[str, str, Convertor[Any]], ...]
    end: str

    @classmethod
    def of(cls, route: Route) -> _PathTemplate:
        texts = PARAM_FORMAT_REGEX.split(route.path_format)
        names = texts[1::2]
        holes = zip(texts[::2], names, (route.param_convertors[name] for name in names), strict=False)
        return cls(tuple(holes), texts[-1])

    def filled(self, parts: dict[str, Any]) -> str:
        """The path with its parameters filled in. Raises KeyError if one is missing."""
        return "".join([before + convertor.to_string(parts[name]) for before, name, convertor in self.holes]) + self.end


class Application(FastAPI):
    """An application that tries its ``routes`` in order.

    Raises:
        ValueError: two routes have the same name.
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
        """The path of a route. Raises NoMatchFound if no route has this name and these parameters."""
        path = self._paths.get(name)
        if path is None:
            return super().url_path_for(name, **path_params)
        if len(path.holes) != len(path_params):
            raise NoMatchFound(name, path_params)
        try:
            return URLPath(path.filled(path_params))
        except KeyError as e:
            raise NoMatchFound(name, path_params) from e
