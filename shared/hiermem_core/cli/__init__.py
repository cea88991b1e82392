"""The command line: thin commands over the public interface, one module per family."""

from hiermem_core.cli.ending import main

__all__ = ["main"]
