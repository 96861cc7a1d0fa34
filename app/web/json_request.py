"""The base of the models of JSON that browsers send."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

MAX_FIELDS = 40
"""Of the body itself. Each unknown field makes an error of its own: 100,000 of them keep everyone waiting for 0.4 s."""


class JsonRequest(BaseModel):
    """The body of a request. It has no other fields than those of the model."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_field_count(cls, body: Any) -> Any:
        if isinstance(body, dict) and len(body) > MAX_FIELDS:
            raise ValueError(f"a request can have at most {MAX_FIELDS} fields")
        return body
