"""Lessons as files to take away: for now, Jupyter notebooks."""
