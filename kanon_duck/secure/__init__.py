"""Releases that are proved safe, one after the other: their structure, its certificates, and the step to the next.

Arrays only. The theory, with its proofs, is in ``docs/secure-releases.md``.
"""
