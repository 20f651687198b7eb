"""A program that writes to a terminal."""
import os
import pty
import select
import subprocess
import termios
import time


def run(command, folder, env, columns=80, apart=False, seconds=60):
    """(what it writes to a terminal of 24 lines, its standard error where that is `apart`, its exit status)"""
    master, slave = pty.openpty()
    if hasattr(termios, "tcsetwinsize"):
        termios.tcsetwinsize(slave, (24, columns))
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST  # lines end as they were written
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    p = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE if apart else slave)
    # Our end of what it writes to stays open until all is read: where the last one closes, what is on its way can be lost.
    out, end, running = b"", time.monotonic() + seconds, True
    while time.monotonic() < end:
        if select.select([master], [], [], 0.05 if running else 0)[0]:
            out += os.read(master, 65536)
        elif not running:
            break
        else:
            running = p.poll() is None
    os.close(slave)
    os.close(master)
    beside = p.stderr.read() if apart else b""
    return out, beside, p.wait(20)
