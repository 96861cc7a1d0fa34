"""Imports: notebooks, MyST Markdown and Jupyter Books become courses. Only commands use it, never a request."""
