#!/usr/bin/env python3
"""Looks at pages of --html in a headless Chromium, at three widths, light and dark: nothing on the console, nothing fetched, nothing wider than the
window, text that can be told from what is behind it; by keyboard it sorts, filters and opens layers, and without its script links do; its numbers are those
of --json.

    tests/checks/check_page.py [BUILD] [--pictures FOLDER] [--page FILE...]

Pages are made of testdata/demo.onnx, or given. --pictures keeps what was seen, as PNG. Exit 77: no Chromium ($OCT_BROWSER names one).
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from pylib import browser  # noqa: E402

WIDTHS = (390, 820, 1400)
SCALE = ["--preprocess", "mean=127.5:std=127.5"]
faults = []


def need(ok, what):
    if not ok:
        faults.append(what)
        print(f"FAULT {what}")


def make(build, folder):
    """The pages of a conversion, of one without samples, and of an evaluation of three models beside each other; {name: (page, JSON or None)}."""
    def run(tool, *args, status=0):
        done = subprocess.run([build / "tools" / tool / tool, *map(str, args), "-q"], cwd=folder, check=False, capture_output=True, text=True, timeout=300)
        if done.returncode != status:
            sys.exit(f"{tool}: exit {done.returncode}: {done.stderr.strip()}")

    demo, images = ROOT / "testdata/demo.onnx", ROOT / "testdata/images"
    calib, judge = ["--data", images / "calib.csv", *SCALE], ["--data", images / "eval.csv", *SCALE, "--samples", 48]
    run("qconvert", demo, *calib, "-o", "demo.int8.onnx", "--html", "convert.html", "--json", "convert.json")
    run("qconvert", demo, "--scheme", "fp16", "-o", "demo.fp16.onnx", "--html", "alone.html")
    run("qconvert", demo, "--scheme", "weight-only", "-o", "demo.int4.onnx")
    run("qconvert", demo, "--target-size", "55%", "-o", "demo.sized.onnx", "--html", "sized.html")
    run("qeval", demo, "demo.int8.onnx", "demo.fp16.onnx", "demo.int4.onnx", *judge, "--layers", "--per-class", "--html", "eval.html", "--json", "eval.json", "--max-size", "60%",  # one has more
        "--max-drop", "top1=20%", status=1)
    made = build / "tests/unit/unit"  # has what no model here has
    if made.exists():
        subprocess.run([made, "page"], env={"OCT_TEST_PAGE": str(folder / "made.html")}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"convert": ("convert.html", None), **({"made": ("made.html", None)} if made.exists() else {}), "alone": ("alone.html", None), "sized": ("sized.html", None), "eval": ("eval.html", "eval.json")}


# What stands on another colour than its own, and how well it can be told from it (WCAG's contrast).
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                       return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c) && c !== 'transparent') return c; }
                        return 'rgb(255,255,255)'; };
  const seen = {};
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg, script, .skip') || !Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const a = light(getComputedStyle(e).color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) seen[e.tagName + '.' + e.className + ' ' + ratio.toFixed(2)] = e.textContent.slice(0, 30);
  }
  return seen;
})()"""
WIDE = """(width => Array.from(document.querySelectorAll('body *')).filter(e => !e.closest('.skip, svg') && e.getBoundingClientRect().right > width + 1 && e.getClientRects().length)
  .map(e => e.tagName + '.' + e.className).slice(0, 5))(%d)"""


# Texts that lie on each other: lines of text as they are drawn, from the top down.
OVER = """(() => {
  const lines = [], seen = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    if (!n.data.trim() || !n.parentElement.checkVisibility() || n.parentElement.closest('svg, script, style, .skip') || getComputedStyle(n.parentElement).position === 'absolute') continue;
    const r = document.createRange();
    r.selectNodeContents(n);
    for (const x of r.getClientRects()) if (x.width > 1) lines.push([x, n]);
  }
  lines.sort((a, b) => a[0].top - b[0].top);
  for (let i = 0; i < lines.length; i++)
    for (let k = i + 1; k < lines.length && lines[k][0].top < lines[i][0].bottom - 4; k++) {
      const a = lines[i][0], b = lines[k][0];
      if (lines[i][1] !== lines[k][1] && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - b.top > 4)
        seen.push(lines[i][1].data.trim().slice(0, 30) + ' | ' + lines[k][1].data.trim().slice(0, 30));
    }
  return seen.slice(0, 5);
})()"""


def look(b, name, page, pictures):
    """At every width, light and dark, with layers closed and open."""
    for width in WIDTHS:
        b.open(page.as_uri(), width)
        for opened in (False, True):
            if opened:
                b.value("document.querySelectorAll('.tools button').forEach(x => x.click())")
            for dark in (False, True):
                at = f"{name}, {width} px, {'dark' if dark else 'light'}{', layers open' if opened else ''}"
                b.scheme(dark)
                need(dark == (b.value("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])") < 80), f"{at}: the colour behind it")
                wide = b.value("document.scrollingElement.scrollWidth")
                need(wide <= width, f"{at}: {wide} px wide: {b.value(WIDE % width) if wide > width else ''}")
                over = b.value(OVER) if not dark else []
                need(over == [], f"{at}: text on text: {over}")
                hard = b.value(CONTRAST) if width == WIDTHS[0] else {}
                need(hard == {}, f"{at}: hard to read: {hard}")
                if pictures:
                    b.picture(pictures / f"{name}-{width}-{'dark' if dark else 'light'}{'-open' if opened else ''}.png")
        need(b.said() == [], f"{name}, {width} px: {b.said()}")


# The cells of a column of the table of layers, as they stand; of the first model.
CELLS = "Array.from(document.querySelector('table.layers').tBodies).filter(x => !x.hidden).map(x => x.rows[0].cells[%d].textContent)"
FOCUS = "document.querySelector('%s').focus()"


def number(text):
    return {"exact": 9999.0, "not finite": -9999.0, "no signal": -9999.0}.get(text, float(text) if re.fullmatch(r"-?[\d.]+", text) else None)


def sorts(b, name):
    for column in (3, 4):
        before = b.value(CELLS % column)
        b.value(FOCUS % f"table.layers thead th:nth-child({column + 1}) button")
        for key, down in (("Enter", False), (" ", True)):
            b.key(key)
            cells = b.value(CELLS % column)
            known = [number(c) for c in cells if c]
            need(sorted(cells) == sorted(before) and known == sorted(known, reverse=down), f"{name}: column {column} after {key!r}: {cells}")
            need(cells[len(known):] == [""] * (len(cells) - len(known)), f"{name}: what has no number does not come last: {cells}")
            said = b.value(f"document.querySelector('table.layers thead th:nth-child({column + 1})').getAttribute('aria-sort')")
            need(said == ("descending" if down else "ascending"), f"{name}: aria-sort says {said}")
        need(b.value("document.querySelectorAll('table.layers:first-of-type thead [aria-sort]').length") == 1, f"{name}: several columns say that they sort")


def filters(b, name):
    names = b.value(CELLS % 1)
    word = names[len(names) // 2].split()[0][-4:].lower()
    b.value(FOCUS % ".tools input")
    for c in word:
        b.key(c)
    left = b.value(CELLS % 1)
    texts = b.value("Array.from(document.querySelector('table.layers').tBodies).map(x => [x.hidden, x.textContent.toLowerCase().includes(%s)])" % json.dumps(word))
    need(0 < len(left) < len(names) and all(hidden != fits for hidden, fits in texts), f"{name}: {word!r} leaves {left}")
    need(b.value("document.querySelector('.tools output').textContent") == f"{len(left)} of {len(names)} layers", f"{name}: what is said of the filter")
    for _ in word:
        b.key("Backspace")
    need(b.value(CELLS % 1) == names or sorted(b.value(CELLS % 1)) == sorted(names), f"{name}: an empty filter does not show all")


def opens(b, name):
    state = "(x => [x.getAttribute('aria-expanded'), getComputedStyle(x.closest('tbody').rows[1]).display, getComputedStyle(x).outlineStyle])(document.activeElement)"
    b.value(FOCUS % "table.layers a.open")
    for key, want in (("Enter", ["true", "table-row"]), (" ", ["false", "none"])):
        b.key(key)
        got = b.value(state)
        need(got[:2] == want and got[2] != "none", f"{name}: {key!r} on a layer gives {got}")


def keys(b, name, page):
    b.open(page.as_uri(), 820)
    b.key("Tab")
    need(b.value("document.activeElement.className") == "skip" and b.value("document.activeElement.getBoundingClientRect().left >= 0"), f"{name}: the first stop is no skip link")
    b.key("Enter")
    need(b.value("document.activeElement.id") == "main", f"{name}: the skip link does not lead to the results")
    if b.value("!!document.querySelector('table.layers')"):
        sorts(b, name)
        filters(b, name)
        opens(b, name)
    need(b.said() == [], f"{name}, by keyboard: {b.said()}")


def addresses(b, name, page):
    """A layer's address opens it, with the script and without."""
    shown = "getComputedStyle(document.getElementById('m1-1')).display"
    for script in (True, False):
        b.open(page.as_uri() + "#m1-1", 820, script=script)
        if b.value("!!document.getElementById('m1-1')"):
            need(b.value(shown) == "table-row", f"{name}: its address does not open a layer{'' if script else ' without the script'}")
            need(b.value("getComputedStyle(document.getElementById('m1-0')).display") == "none", f"{name}: another layer is open")
    need(b.value("getComputedStyle(document.querySelector('.tools') || document.head).display") == "none", f"{name}: tools are shown without the script")


def prints(b, name, page):
    b.open(page.as_uri(), 720)
    b.scheme(True, media="print")
    need(b.value("getComputedStyle(document.querySelector('nav')).display") == "none", f"{name}: links are printed")
    need(b.value("document.scrollingElement.scrollWidth") <= 720, f"{name}: too wide to print")
    need(b.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", f"{name}: not printed on white")


def numbers(b, name, page, report):
    """The layers of each model are those of the JSON report, in the network's order, with its numbers."""
    r = json.loads(report.read_text())
    b.open(page.as_uri(), 1400)
    for k, m in enumerate(r["models"][1:]):
        rows = b.value("Array.from(document.querySelectorAll('table.layers')[%d].tBodies).map(x => Array.from(x.rows[0].cells).map(c => c.textContent))" % k)
        seen = {(row[1], row[3], row[4]) for row in rows}
        text = lambda v, exact: "exact" if exact else "not finite" if v is None else f"{v:.1f}"  # noqa: E731
        for layer in m["layers"]:
            want = (f"{layer['name']} {layer['op']}", text(layer.get("own_sqnr_db"), layer.get("own_exact")) if "own_sqnr_db" in layer else "",
                    text(layer["sqnr_db"], layer.get("exact")))
            need(want in seen, f"{name}, {m['path']}: no row {want}")
    top = [m["metrics"]["top1"] for m in r["models"]]
    shown = b.value("Array.from(document.querySelector('#accuracy tbody').rows).slice(1).map(x => x.cells[1].textContent)")
    need(shown == [f"{100 * v:.2f} %" for v in top], f"{name}: top1 {shown}, not {top}")


def reasons(b, name, page):
    """Why a layer is as it is, in words: rules are called rules."""
    b.open(page.as_uri(), 1400)
    why = set(b.value("Array.from(document.querySelectorAll('.facts dt')).filter(x => x.textContent === 'why').map(x => x.nextSibling.textContent)"))
    need(any(w.startswith("by the rule 'any' (line ") and "of the built-in policy)" in w for w in why) and not any("(built-in:" in w for w in why), f"{name}: {why}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default=ROOT / "build", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--page", nargs="+", type=Path)
    a = parser.parse_args()
    program = browser.find()
    if not program:
        print("no Chromium (Debian: chromium-headless-shell; $OCT_BROWSER names another): the page was not looked at")
        return 77
    if a.pictures:
        a.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, browser.Browser(program) as b:
        folder = Path(temporary)
        pages = {p.stem: (p.resolve(), None) for p in a.page} if a.page else make(a.build.resolve(), folder)
        for name, (page, report) in pages.items():
            look(b, name, folder / page, a.pictures)
            keys(b, name, folder / page)
            addresses(b, name, folder / page)
            prints(b, name, folder / page)
            if name == "convert":
                reasons(b, name, folder / page)
            if report:
                numbers(b, name, folder / page, folder / report)
            print(f"{name}: {(folder / page).stat().st_size} bytes")
    print(f"{len(pages)} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
