"""Lessons as files to take away: Jupyter notebooks, HTML pages, Python scripts and Markdown."""
