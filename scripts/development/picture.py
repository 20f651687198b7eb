#!/usr/bin/env python3
"""Makes docs/images/report.png, the picture of a report in README.md: the top and the layers of the page that qeval writes on the bundled model.

    scripts/development/picture.py [BUILD] [-o FILE]

Headless Chromium is needed ($OCT_BROWSER names one), and pillow, which stores the picture in 64 colours so that it stays small.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from pylib import browser  # noqa: E402

WIDTH, HEIGHT, COLOURS, LIMIT = 1200, 2600, 64, 150_000
DRAWING = 425  # pixels from the heading of the layers to the end of their drawing
MARGIN = 24


def page(build, folder):
    """The page of an evaluation like that of scripts/demo. Paths that it shows are relative to the checkout."""
    def run(tool, *args):
        subprocess.run([build / "tools" / tool / tool, *args, "-q"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)

    made, html, steps = str(folder / "demo.int8.onnx"), str(folder / "demo.html"), ("--preprocess", "mean=127.5:std=127.5")
    run("qconvert", "testdata/demo.onnx", "--data", "testdata/images/calib.csv", *steps, "-o", made)
    run("qeval", "testdata/demo.onnx", made, "--data", "testdata/images/eval.csv", *steps, "--html", html)
    return folder / "demo.html"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/images/report.png")
    a = parser.parse_args()
    program = browser.find()
    if not program:
        sys.exit("no Chromium was found; OCT_BROWSER names one")
    with tempfile.TemporaryDirectory() as temporary, browser.Browser(program) as b:
        folder = Path(temporary)
        b.open(page(a.build.resolve(), folder).as_uri(), WIDTH, HEIGHT)
        b.picture(folder / "seen.png", whole=False)
        end = int(b.value("document.querySelector('nav').getBoundingClientRect().top"))
        layers = int(b.value("[...document.querySelectorAll('h2')].find(h => h.textContent === 'Layers').getBoundingClientRect().top")) - MARGIN
        seen = Image.open(folder / "seen.png").convert("RGB")
        made = Image.new("RGB", (WIDTH, end + DRAWING))
        made.paste(seen.crop((0, 0, WIDTH, end)), (0, 0))
        made.paste(seen.crop((0, layers, WIDTH, layers + DRAWING)), (0, end))
        a.output.parent.mkdir(parents=True, exist_ok=True)
        made.quantize(COLOURS).save(a.output, optimize=True)
    size = a.output.stat().st_size
    print(f"{a.output}: {size} bytes")
    return 1 if size > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
