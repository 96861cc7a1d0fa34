"""Lessons as downloads: Jupyter notebooks, HTML pages, Python scripts and Markdown."""
