"""The Python packages that a script needs. Imports none of them itself."""
import importlib
import importlib.metadata
import importlib.util
import os
import sys


def need(*names):
    """Where one cannot be imported, runs the script anew with the Python that OCT_PYTHON names; without such a Python the script
    says so and ends as skipped (exit 77)."""
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError as missing:
        other = os.environ.get("OCT_PYTHON")
        if other and not os.environ.get("OCT_PYTHON_TRIED"):
            os.environ["OCT_PYTHON_TRIED"] = "1"
            os.execv(other, [other, *sys.argv])
        print(f"skipped: {missing}; OCT_PYTHON names a Python that has {', '.join(names)}")
        sys.exit(77)


def version(name):
    return importlib.metadata.version(name)


def has(name):
    """Whether a package that only some machines have is there."""
    return importlib.util.find_spec(name) is not None
