"""Lessons: files of Markdown and code, read, checked, rendered and served. No database."""
