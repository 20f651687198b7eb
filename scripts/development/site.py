"""Hooks of mkdocs.yml: README.md is the first page, the manuals become pages by mandoc, and links to files beside the documents become their names."""
import re
import shutil
import subprocess
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def manual(page):
    if not shutil.which("mandoc"):
        return f"# {page.name}\n\n```text\n{page.read_text()}```\n"
    text = subprocess.run(["mandoc", "-T", "markdown", page], check=True, capture_output=True, text=True).stdout
    return f"# {page.stem}\n\n" + re.sub(r"^# ", "## ", text.split("\n", 2)[2], flags=re.M)


def on_files(files, config):
    readme = (ROOT / "README.md").read_text()
    files.append(File.generated(config, "index.md", content=re.sub(r"\]\(docs/", "](", readme)))
    for page in sorted((ROOT / "man").glob("*.[1-9]")):
        files.append(File.generated(config, f"{page.name}.md", content=manual(page)))
    return files


def on_page_markdown(markdown, page, config, files):
    def link(found):
        text, target = found.groups()
        if target.startswith("../man/"):
            return f"[{text}]({target[len('../man/'):]}.md)"
        name = target.split("#")[0]
        beside = name and "://" not in name and files.get_file_from_path(name) is None and any((folder / name).exists() for folder in (ROOT / "docs", ROOT))
        return text if beside else found.group()
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S))
