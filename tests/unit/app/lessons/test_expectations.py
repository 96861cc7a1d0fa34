"""Whether a cell printed what the prose beside it claims."""

from __future__ import annotations

import pytest

from app.lessons.expectations import Expectation, VacuousExpectation, unmet_expectations


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("right: True", "4 devices ring   right: True"),
        ("ring right: True", "ring       right: True"),
        ("busiest: 5.3 W", "busiest: 5.25 W"),
        ("loss 0.50", "loss 0.498"),
        ("loss 0.50", "loss .. loss 0.1, loss 0.5012"),
        ("60,000 images", "60000 images"),
        ("differs by 3e-08", "differs by 3.1e-08"),
        ("differs by <1e-6", "differs by 5.96e-08"),
        ("differs by >0.1", "differs by 12"),
        ("off by -0.25±0.05", "off by -0.21"),
        ("replica ...: 0.5", "replica 3 of 4: 0.5"),
        ("[1. 2. 3.]", "[1. 2. 3.]"),
        ("differs by 0.0", "differs by -0.0"),
        ("x1 is 4", "x1 is 4"),
        ("a+b (c)", "a+b (c)"),
        ("<tf.Tensor: 4>", "<tf.Tensor: 4>"),
    ],
)
def test_a_line_contains_what_it_says(text: str, line: str) -> None:
    assert Expectation.parse(text).found_in(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("right: True", "right: False"),
        ("loss 0.50", "loss 0.51"),
        ("4 devices", "14 devices"),
        ("4 devices", "-4 devices"),
        ("devices: 4", "devices: 40"),
        ("devices: 4", "devices: 4.9"),
        ("devices: 4", "devices: 4e9"),
        ("differs by <1e-6", "differs by 1e-6"),
        ("differs by <1e-6", "differs by nan"),
        ("differs by >0.1", "differs by 0.1"),
        ("differs by 0.0", "differs by 0.04"),
        ("off by 0.25±0.05", "off by 0.31"),
        ("x1 is 4", "x2 is 4"),
        ("a.b", "aXb"),
    ],
)
def test_a_line_that_says_otherwise_does_not(text: str, line: str) -> None:
    assert not Expectation.parse(text).found_in(line)


@pytest.mark.parametrize("text", ["", "  ", "...", " ... ..."])
def test_an_expectation_that_any_output_meets_is_refused(text: str) -> None:
    with pytest.raises(VacuousExpectation):
        Expectation.parse(text)


def test_what_is_missing_is_reported_beside_the_closest_line() -> None:
    lines = ["replicas: 4", "", "largest difference: 0.2"]

    assert unmet_expectations(["replicas: 4", "largest difference: <1e-6"], lines) == [
        "did not print 'largest difference: <1e-6'; the closest line is 'largest difference: 0.2'"
    ]


def test_a_cell_without_output_met_nothing() -> None:
    assert unmet_expectations(["replicas: 4"], [""]) == ["did not print 'replicas: 4'; it printed nothing"]
