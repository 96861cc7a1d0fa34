"""Makes ``import`` find Lockstep's own modules in place of packages that notebooks use and that are not installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from runners.guest.api import myst_nb, tensorflow_hub
from runners.guest.cluster import portpicker
from runners.wire.supplied_modules import SUPPLIED_MODULES

_CONTENTS: Mapping[str, Mapping[str, Any]] = {
    "myst_nb": {"__doc__": myst_nb.__doc__, "glue": myst_nb.glue},
    "portpicker": {"__doc__": portpicker.__doc__, "pick_unused_port": portpicker.pick_unused_port},
    "tensorflow_hub": {
        "__doc__": tensorflow_hub.__doc__,
        "load": tensorflow_hub.load,
        "__getattr__": tensorflow_hub.attribute,
    },
}


def install() -> None:
    """Make each of the modules importable, unless the real one is installed."""
    for name in SUPPLIED_MODULES:
        if importlib.util.find_spec(name) is None:
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)  # other packages look for it to see what is installed
            vars(module).update(_CONTENTS[name])
            sys.modules[name] = module
