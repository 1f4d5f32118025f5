"""Rows as numbers: steps of numeric columns, codes of hierarchies, and the information loss of classes."""
