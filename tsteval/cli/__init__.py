"""The command `tsteval`."""

from .app import main

__all__ = ["main"]
