"""The exceptions: for a request that cannot be carried out, and for a call that nobody waits for any more."""

from __future__ import annotations


class KanonError(Exception):
    """A request that cannot be carried out.

    The message is one clear sentence that names the argument, the offending value and what to do.
    Everything that the call has begun is rolled back before the message reaches the caller.
    """

    @property
    def reason(self) -> str:
        """The message without details that only help to find a fault in kanon_duck itself."""
        return str(self)


class RecordedError(KanonError):
    """A request that cannot be carried out, and whose failure is recorded in the database.

    The record, and nothing else, is committed before the message reaches the caller.
    """


class RefusedReleaseError(KanonError):
    """The check of a release, as a reader would see it, has found that it breaks a declared model."""


class Cancelled(BaseException):
    """The statement that asked for the work was interrupted: stop and leave everything as it was.

    It is not an ``Exception``, so that no handler for failures mistakes it for one.
    """
