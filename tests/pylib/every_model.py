"""What checks of what is announced share: many models, each converted in several ways, counted by one Checker."""
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


def run(doc, layers, ways, check, every=1):
    """Calls check(Checker, Model, way) for each model that has samples in every `every`th of the ways in turn, with --all in all of them; layers(folder)
    yields the check's own models. Returns the exit code."""
    parser = options(doc)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--only", action="append", metavar="GLOB")
    parser.add_argument("--all", action="store_true", help="each model in all ways")
    args = parser.parse_args()
    with Checker(args) as c:
        work = c.folder / "models"
        work.mkdir()
        for i, m in enumerate(_models(args, work, layers)):
            if m.data and (not args.only or any(fnmatch(m.name, g) for g in args.only)):
                for k, way in enumerate(ways):
                    if args.all or (i + k) % every == 0:
                        check(c, m, way)
        return c.finish()
