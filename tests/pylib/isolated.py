"""Calls in processes that may crash: each process has one call at a time, so that a crash, or a call that never ends, costs that call alone."""
import multiprocessing
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue

CALLS = 100  # that one process does: what the runtimes keep of models grows with their number
_SPAWN = multiprocessing.get_context("spawn")


class Died(Exception):
    """The process of a call crashed, or was ended."""


def _serve(pipe, function):
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((function(task), None))
        except Exception as error:  # it may hold what cannot be sent
            pipe.send((None, f"{type(error).__name__}: {str(error)[:300]}"))


class Worker:
    """A process that calls function(task), a function of a module that takes and returns what can be pickled."""

    def __init__(self, function, seconds):
        self.function, self.seconds, self.process = function, seconds, None

    def _start(self):
        self.pipe, theirs = _SPAWN.Pipe()
        self.process, self.calls = _SPAWN.Process(target=_serve, args=(theirs, self.function), daemon=True), 0
        self.process.start()
        theirs.close()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = None

    def call(self, task):
        """Its result. Died, or RuntimeError with what it raised."""
        if self.process and self.calls >= CALLS:
            self.stop()
        if not self.process:
            self._start()
        self.calls += 1
        try:
            self.pipe.send(task)
            if not self.pipe.poll(self.seconds):
                raise Died(f"no result in {self.seconds} s")
            result, error = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.stop()
            raise Died(f"its process ended with {code}") from None
        except Died:
            self.stop()
            raise
        if error:
            raise RuntimeError(error)
        return result


def call_all(function, tasks, jobs=1, seconds=600):
    """Yields (task, result, error) as calls end, error being None or an exception; `jobs` processes at once."""
    idle = SimpleQueue()
    workers = [Worker(function, seconds) for _ in range(jobs)]
    for worker in workers:
        idle.put(worker)

    def one(task):
        worker = idle.get()
        try:
            return task, worker.call(task), None
        except (Died, RuntimeError) as error:
            return task, None, error
        finally:
            idle.put(worker)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(one, task) for task in tasks]):
                yield done.result()
    finally:
        for worker in workers:
            worker.stop()
