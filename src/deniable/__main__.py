"""``deniable`` and ``python -m deniable`` are the command line."""

import os
import signal
import sys
from _thread import interrupt_main
from contextlib import suppress
from threading import Thread

_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""What a user may set. The last is no default of ours: it would also say how pyarrow reads."""


def _end_with_stdin() -> None:
    """End as by Control-C at the end of standard input, whose other end the studio holds: it may be
    killed. Nothing else is read from there."""
    held = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def wait() -> None:
        with suppress(OSError):
            while os.read(held, 1):
                pass
        if os.name == "posix":
            os.kill(0, signal.SIGINT)  # with its workers
        else:
            interrupt_main()  # Windows has no such signal to send

    Thread(target=wait, daemon=True).start()


def main() -> None:
    """Run the command line, which can be interrupted while it loads too, and not once it is done.

    Linear algebra works on one thread unless the user says otherwise: there are many small systems,
    and threads that wait for one another take more time than they save. The libraries read these
    variables when numpy is first imported.
    """
    if os.environ.pop("DENIABLE_ENDS_WITH_STDIN", ""):
        _end_with_stdin()
    if not any(os.environ.get(name) for name in _THREADS):
        os.environ.update(dict.fromkeys(_THREADS[:2], "1"))
    try:
        from deniable.cli import main as run

        run()
        # All is written, and Python takes a while to end: Ctrl-C would only change the status.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Of what meets a class as it is made, Python up to 3.11 makes the cause of another error.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        sys.stderr.write("deniable: interrupted; no incomplete output remains\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
