"""Text of TOML files that Headrace writes; the standard library reads TOML and does not write it."""

from collections.abc import Mapping


def toml_string(text: str) -> str:
    """Return a basic string of TOML; a quoted key has the same form."""
    escaped = "".join(
        f"\\u{ord(each):04x}" if ord(each) < 0x20 or ord(each) == 0x7F else each
        for each in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'


def toml_lines(values: Mapping[str, str]) -> str:
    """Return a line for each key and its text."""
    return "".join(f"{toml_string(key)} = {toml_string(text)}\n" for key, text in values.items())
