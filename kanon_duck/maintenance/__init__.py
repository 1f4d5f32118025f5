"""Keeps a masked view in step with its source: finds changes, places rows, makes the next release."""
