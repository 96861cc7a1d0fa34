"""Notebooks as Jupyter and Colab write them, for tests that import them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
PNG_BASE64 = base64.b64encode(PNG).decode()


def text_cell(source: str, **fields: Any) -> dict[str, Any]:
    """A Markdown cell; its source is a list of lines, as Jupyter writes it."""
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True), **fields}


def code_cell(source: str, metadata: Mapping[str, Any] | None = None, *, printed: str = "") -> dict[str, Any]:
    """A code cell, with what it has printed."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": [printed]}] if printed else []
    return {
        "cell_type": "code",
        "metadata": dict(metadata or {}),
        "source": source.splitlines(keepends=True),
        "outputs": outputs,
        "execution_count": None,
    }


def notebook_text(*cells: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, minor: int = 4) -> str:
    """The text of a notebook of format 4."""
    return json.dumps({"nbformat": 4, "nbformat_minor": minor, "metadata": dict(metadata or {}), "cells": cells})
