"""Lessons: Markdown files with code that are parsed, checked, rendered and served. Uses no database."""
