"""Reasons why a playground cannot be opened, shared or shown."""

from __future__ import annotations

from app.errors import InvalidInput, NotFound
from app.i18n import N_


class SharedPlaygroundNotFound(NotFound):
    """There is no such copy, or its owner has revoked it."""

    message = N_("This shared playground does not exist. Its owner may have revoked the link.")


class InvalidNotebook(InvalidInput):
    """The file is not a notebook that Jupyter could open."""

    message = N_(
        "This is not a Jupyter notebook. Open a notebook, a Python script, or a text file that ends in .csv, .tsv, "
        ".txt, .json, or .jsonl."
    )


class ForeignNotebook(InvalidInput):
    """The notebook is written in another language than Python."""

    message = N_("This notebook is written in {language}. Only Python runs here.")


class InvalidDataFileName(InvalidInput):
    """The name could be a path, or be read as more than a name by the cell that writes the file."""

    message = N_(
        "A data file needs a name of at most 100 letters, digits, dots, hyphens, and underscores. Rename it, then open "
        "it again."
    )


class DataFileTooLarge(InvalidInput):
    """The content of the file does not fit into a cell."""

    message = N_("A data file can have up to {most} KB. Open a part of it.")


class NothingToOpen(InvalidInput):
    """The file has no code and no text."""

    message = N_("This file has no cells. Choose another one.")


class NothingToShare(InvalidInput):
    """The learner's playground is empty."""

    message = N_("Your playground is empty. Add a cell, then share it.")


class TooManyShares(InvalidInput):
    """The account has the maximum number of shared copies."""

    message = N_("You have shared {most} copies, and that is the limit. Revoke one that you no longer need.")
