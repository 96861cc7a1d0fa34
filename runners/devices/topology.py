"""The machine a session sees, as a word: ``cpu`` or ``gpu:4``.

Pure: no TensorFlow here, so the web application may describe a topology too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MOST_DEVICES = 8
POSSIBLE = f"cpu, gpu:1 … gpu:{MOST_DEVICES}"

_GPU = re.compile(r"gpu:([1-9][0-9]?)", re.ASCII)


class UnknownTopology(ValueError):
    """The text names no machine Lockstep can show. ``str()`` lists what is possible."""

    def __init__(self, text: str) -> None:
        super().__init__(f"unknown topology {text[:40]!r}; possible: {POSSIBLE}")
        self.text = text


@dataclass(frozen=True, slots=True)
class Topology:
    """A parsed topology: ``devices`` devices of one ``kind`` on one machine."""

    kind: Literal["cpu", "gpu"]
    devices: int

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Read ``cpu`` or ``gpu:N`` with 1 <= N <= 8.

        Raises:
            UnknownTopology: for anything else.
        """
        if text == "cpu":
            return cls("cpu", 1)
        match = _GPU.fullmatch(text)
        if match and int(match[1]) <= MOST_DEVICES:
            return cls("gpu", int(match[1]))
        raise UnknownTopology(text)

    @property
    def replicas(self) -> int:
        """How many replicas ``MirroredStrategy()`` has here."""
        return self.devices

    @property
    def simulated(self) -> bool:
        """True while the accelerators are stand-ins: logical CPU devices under another name."""
        return self.kind != "cpu"

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.devices}"
