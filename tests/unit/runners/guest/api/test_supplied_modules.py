"""Modules in place of packages that are not installed: code finds them as it finds packages."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import patch

import pytest

from runners.guest.api import supplied_modules
from runners.wire.supplied_modules import SUPPLIED_MODULES


@pytest.mark.parametrize(
    ("name", "attribute"), [("myst_nb", "glue"), ("portpicker", "pick_unused_port"), ("tensorflow_hub", "load")]
)
def test_code_that_asks_what_is_installed_finds_a_supplied_module(name: str, attribute: str) -> None:
    with patch.dict(sys.modules):
        sys.modules.pop(name, None)
        supplied_modules.install()

        found = importlib.util.find_spec(name)  # raises an error for a module without one
        assert found is not None
        assert found.name == name
        assert callable(getattr(import_module(name), attribute))


def test_a_package_that_is_installed_is_left_alone() -> None:
    with patch.dict(sys.modules):
        for name in SUPPLIED_MODULES:
            sys.modules[name] = ModuleType(name)
            sys.modules[name].__spec__ = ModuleSpec(name, None)
        installed = {name: sys.modules[name] for name in SUPPLIED_MODULES}
        supplied_modules.install()

        assert {name: sys.modules[name] for name in SUPPLIED_MODULES} == installed
