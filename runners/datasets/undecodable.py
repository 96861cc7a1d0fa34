"""What decoders say of files that hold something else than the catalog says."""

from __future__ import annotations


class Undecodable(ValueError):
    """The bytes are not what the catalog says. ``str()`` says what is wrong, without naming the file."""


class UndecodableFile(Undecodable):
    """``file`` cannot be decoded."""

    def __init__(self, file: str, detail: str) -> None:
        super().__init__(detail)
        self.file = file
