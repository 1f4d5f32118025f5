"""The one exception a caller sees, and the one that stops a call nobody waits for any more."""

from __future__ import annotations


class KanonError(Exception):
    """A request that cannot be carried out.

    The message is one clear sentence that names the argument, the offending value and what to do.
    Whatever the call had begun is rolled back before the message reaches the caller.
    """

    @property
    def reason(self) -> str:
        """The message without what only helps to find a fault of ours."""
        return str(self)


class RecordedError(KanonError):
    """A request that cannot be carried out, of which the database keeps a record.

    What the call has written, and only that, is committed before the message reaches the caller.
    """


class RefusedReleaseError(KanonError):
    """The check of a release, as a reader would see it, has found that it breaks a declared model."""


class Cancelled(BaseException):
    """The statement that asked for the work was interrupted: stop, and leave the old state.

    Not an ``Exception``, so that no handler for failures mistakes it for one.
    """
