"""Keeps a masked view in step with its source: capture, batch, succession."""
