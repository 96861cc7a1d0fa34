"""Searching the text and code of lessons."""
