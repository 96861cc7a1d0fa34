"""The command line: one module for each noun."""

from __future__ import annotations

import typer

from app.cli import datasets, db, doctor, kernelspec, lesson, run, serve

app = typer.Typer(
    help="Learn distributed TensorFlow by running it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.command("run")(run.run)
app.command("doctor")(doctor.doctor)
app.add_typer(lesson.app, name="lesson")
app.add_typer(db.app, name="db")
app.add_typer(datasets.app, name="datasets")
app.add_typer(kernelspec.app, name="kernelspec")
