"""Rows as numbers: steps of numeric columns, codes of hierarchies, and what a class of codes loses."""
