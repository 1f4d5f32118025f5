"""Releases that are proved safe one after the other: the structure, its certificates, and the step from one to the next.

Arrays only. The theory, with its proofs, is in ``docs/secure-releases.md``.
"""
