"""Files of comma-separated values with a header, as lists of {field: text}."""
import csv


def read(path):
    """[] where there is no such file."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path, fields, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, fields, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
