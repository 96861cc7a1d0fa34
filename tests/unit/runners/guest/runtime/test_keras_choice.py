"""Code that sets ``TF_USE_LEGACY_KERAS`` for its own process is recognized, and other mentions are not."""

from __future__ import annotations

import pytest

from runners.guest.runtime.keras_choice import chooses_keras_2


@pytest.mark.parametrize(
    ("code", "chosen"),
    [
        ('import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"', True),
        ("os.environ['TF_USE_LEGACY_KERAS']='True'", True),
        ('os.environ.update(TF_USE_LEGACY_KERAS="1")', True),
        ('os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")', True),
        ('os.environ |= {"TF_USE_LEGACY_KERAS": "1"}', True),
        ("%env TF_USE_LEGACY_KERAS=1", True),
        ('%%time\nos.environ["TF_USE_LEGACY_KERAS"] = "1"', True),
        ('os.environ["TF_USE_LEGACY_KERAS"] = "0"', False),
        ("!TF_USE_LEGACY_KERAS=1 python main.py", False),
        ("%%writefile main.py\nimport os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'", False),
        ("# TF_USE_LEGACY_KERAS=1 would choose Keras 2", False),
        ('print(os.environ["TF_USE_LEGACY_KERAS"])', False),
    ],
)
def test_only_code_that_sets_it_here_chooses_keras_2(code: str, chosen: bool) -> None:
    assert chooses_keras_2(code) is chosen
