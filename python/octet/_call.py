"""A call of the library: its errors, and callbacks that may raise."""
import contextvars
import os
import tempfile
import threading
from typing import Any, Optional

from ._library import lib


class Error(Exception):
    """A call that failed.

    status: why, as the exit codes of the programs: 1 a goal or gate was missed, 2 wrong options, 3 a file, 4 a malformed input, 5 unsupported,
    6 numbers (NaN, overflow), 7 out of memory. hint: what to do, or "". report: of a goal that was missed the Result, else None."""

    status: int
    hint: str
    report: Optional[Any]

    def __init__(self, text: str, status: int, hint: str, report: Optional[Any] = None) -> None:
        super().__init__(text)
        self.status, self.hint, self.report = status, hint, report

    def __str__(self) -> str:
        return super().__str__() + (f"\n  hint: {self.hint}" if self.hint else "")

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.hint, self.report)


class Place:
    """An `octet` of the library, for one call or one model."""

    def __init__(self):
        self.at = lib.octet_open()
        if not self.at:
            raise MemoryError

    def close(self):
        at, self.at = self.at, None
        lib.octet_close(at)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fault(self, status, report=None, plain=str):
        """The error of the last call. plain: makes the texts what the user is told."""
        text, hint = (plain(t.decode("utf-8", "replace")) for t in (lib.octet_error(self.at), lib.octet_hint(self.at)))
        return Error(text, status, hint, report)


class Call:
    """A call whose callbacks may raise, and which Ctrl-C ends: Python runs the handlers of signals in the main thread alone, between its own
    instructions. So there the library works in a thread of its own."""

    def __init__(self, place):
        self.place, self.raised = place, None

    def guard(self, function, failed=None):
        """What may raise, as a function for the library; failed: what it returns then."""
        def guarded(*arguments):
            if self.raised is None:
                try:
                    return function(*arguments)
                except BaseException as e: # pylint: disable=broad-exception-caught
                    self.stop(e)
            return failed
        return guarded

    def stop(self, why):
        self.raised = self.raised or why
        lib.octet_stop(self.place.at)

    def run(self, function, *arguments):
        """The status. Raises what a callback has raised, or a handler of a signal, after the call has ended."""
        if threading.current_thread() is not threading.main_thread():
            status = function(self.place.at, *arguments)
        else:
            status = self._run_beside(function, arguments)
        if self.raised is not None:
            raise self.raised
        return status

    def _run_beside(self, function, arguments):
        result, done = [], threading.Event()

        def work():
            try:
                result.append(function(self.place.at, *arguments))
            finally:
                done.set()

        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="octet", daemon=True)
        try:
            thread.start() # it waits for the thread, and a signal may come meanwhile
        except RuntimeError as e:
            if thread.ident is None: # there is no thread
                raise
            self.stop(e)
        except BaseException as e: # pylint: disable=broad-exception-caught
            self.stop(e)
        while True:
            try:
                # A wait without end may begin just after a signal came, or while another thread gets it, and would miss it.
                while not done.wait(0.05):
                    if self.raised is not None:
                        lib.octet_stop(self.place.at) # again: the call may have begun after it was first asked to stop
                break
            except BaseException as e: # pylint: disable=broad-exception-caught
                self.stop(e)
        thread.join()
        return result[0]


# tempfile takes a lock of its own when it is first used. A process forked meanwhile would wait for it without end: a fork waits until no thread is in there.
_making = threading.RLock()
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)


def folder():
    """A folder for files that the library is to read."""
    with _making:
        return tempfile.TemporaryDirectory(prefix="octet-")
