"""The package's version, readable without importing the rest."""

__version__ = "0.1.0"
