"""A validator of the part of JSON Schema 2020-12 that share/schema uses, with Python alone. A keyword that it does not know is a fault of the schema."""
import re

KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "const",
         "anyOf", "pattern"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def members(value, schema, root, path):
    yield from (f"{path}: lacks '{k}'" for k in schema.get("required", ()) if k not in value)
    more = schema.get("additionalProperties", True)
    for k, v in value.items():
        if k in schema.get("properties", {}):
            yield from faults(v, schema["properties"][k], root, f"{path}.{k}")
        elif more is False:
            yield f"{path}: has '{k}', which is not declared"
        elif more is not True:
            yield from faults(v, more, root, f"{path}.{k}")


def faults(value, schema, root, path="$"):
    """What does not fit, a line each."""
    if unknown := schema.keys() - KNOWN:
        yield f"{path}: the schema has {sorted(unknown)}"
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    kinds = schema.get("type", [])
    if kinds and not any(is_type(value, k) for k in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{path}: {value!r:.60} is not {kinds}"
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r:.60} is not {schema.get('enum', schema.get('const'))}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r:.60} is not like {schema['pattern']}"
    if "anyOf" in schema and all(any(True for _ in faults(value, s, root, path)) for s in schema["anyOf"]):
        yield from faults(value, schema["anyOf"][0], root, path)
    if isinstance(value, dict):
        yield from members(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            yield from faults(v, schema["items"], root, f"{path}[{i}]")
