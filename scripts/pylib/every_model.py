"""What checks of what is announced share: many models, each converted in several ways, counted by one Checker."""
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from pylib import digest_models
from pylib.judge import Checker, options


def _models(args, folder, layers):
    """Those of testdata/, small networks, `layers`, and what --zoo and --shared add."""
    yield from digest_models.bundled(folder)
    yield from digest_models.small(folder, lambda _: True)
    yield from layers(folder)
    if args.zoo:
        yield from digest_models.networks(folder, args.zoo, 1, lambda _: True)
    if args.shared and args.shared.is_dir():
        yield from digest_models.trained(folder, args.shared, lambda _: True)
    elif args.shared:
        print(f"the trained models are not there ({args.shared}): skipped")


def run(doc, layers, check):
    """Calls check(Checker, Model) for each model that has samples; layers(folder) yields the check's own. Returns the exit code."""
    parser = options(doc)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--only", action="append", metavar="GLOB")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octet-every-") as folder:
        c, work = Checker(args, Path(folder)), Path(folder) / "models"
        work.mkdir()
        for m in _models(args, work, layers):
            if m.data and (not args.only or any(fnmatch(m.name, g) for g in args.only)):
                check(c, m)
        return c.finish()
