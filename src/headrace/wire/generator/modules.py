"""Generate one whole codec module from the two tables of an API."""

import re
from types import ModuleType

from headrace.wire.generator.classes import class_lines, structs_of
from headrace.wire.generator.layouts import Layout, message_layout
from headrace.wire.generator.names import LETTERS, FunctionNames
from headrace.wire.generator.readers import reader_lines
from headrace.wire.generator.text import INDENT, imports, signature
from headrace.wire.generator.writers import writer_lines
from headrace.wire.primitives import layouts, readers, writers
from headrace.wire.schemas import notation
from headrace.wire.schemas.notation import VERSION_MAX, Field, Message, Struct

RESERVED = {"body", "position", "message", "write", "tag", "tag_count", "stop", "tagged", "parts", "tuple", "range"}
"""Names that the generated functions use themselves."""

_LAYOUT_NAMES = [name for name in vars(layouts) if name.isupper()] + ["Buffer"]


def module_text(request: Message, response: Message, source: str) -> str:
    """Return the text of the module; `source` names its table."""
    _check(request, response)
    lines: list[str] = []
    for message in (request, response):
        lines += class_lines(message)
    for message in (request, response):
        lines += _function_lines(message)
    for message in (request, response):
        lines += _entry_lines(message)
    code = "\n".join(lines)
    return "\n".join([*_head_lines(request, source, code), *_struct_lines(code), *lines]) + "\n"


def _check(request: Message, response: Message) -> None:
    if (request.versions, request.flexible) != (response.versions, response.flexible):
        raise ValueError(f"{request.api_name}: request and response must have the same versions")
    for message in (request, response):
        for fields in structs_of(message).values():
            if clash := RESERVED & {field.name for field in fields}:
                raise ValueError(f"{message.name}: fields {clash} clash with names of the generated code")


def _head_lines(request: Message, source: str, code: str) -> list[str]:
    flexible_from = request.flexible.first if request.flexible.last >= 0 else VERSION_MAX
    return [
        f'"""{request.api_name} ({request.api_key}), versions {request.versions.first} to {request.versions.last}.',
        "",
        f"Generated from {source} by `python -m headrace.wire.generator`.",
        "Change the table, not this file.",
        '"""',
        "",
        "from dataclasses import dataclass",
        *(["from struct import Struct"] if _struct_names(code) else []),
        "",
        *imports("headrace.wire.codec", ("Encoding", "begin_encoding", "decode", "decode_view", "encode"), code),
        *imports("headrace.wire.primitives.layouts", _LAYOUT_NAMES, code),
        *imports("headrace.wire.primitives.readers", _functions(readers), code),
        *imports("headrace.wire.primitives.writers", (*_functions(writers), "NO_TAGS", "Write"), code),
        "",
        f"API_KEY = {request.api_key}",
        f"MIN_VERSION = {request.versions.first}",
        f"MAX_VERSION = {request.versions.last}",
        f"FLEXIBLE_FROM = {flexible_from}",
    ]


def _functions(module: ModuleType) -> list[str]:
    """Return the functions that the module itself defines, for others to use."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and name.islower() and getattr(value, "__module__", "") == module.__name__
    ]


def _struct_names(code: str) -> list[str]:
    return sorted(set(re.findall(r"(?<=[ (])(_[A-Z]{2,})(?=\.(?:un)?pack)", code)))


def _struct_lines(code: str) -> list[str]:
    formats = {letter: getattr(notation, name.upper()).format for name, letter in LETTERS.items()} | {"X": "x"}
    names = _struct_names(code)
    if not names:
        return []
    return ["", *(f'{name} = Struct(">{"".join(formats[letter] for letter in name[1:])}")' for name in names)]


def _function_lines(message: Message) -> list[str]:
    names = FunctionNames(message)
    lines: list[str] = []
    for layout in names.layouts():
        lines += reader_lines(layout, names)
        lines += writer_lines(layout, names)
    return lines


def _entry_lines(message: Message) -> list[str]:
    names = FunctionNames(message)
    versions = range(message.versions.first, message.versions.last + 1)
    missing = ["None"] * message.versions.first
    by_version: list[Layout] = [message_layout(message, version) for version in versions]
    kind = message.kind.lower()
    readers, writers = f"_{kind.upper()}_READERS", f"_{kind.upper()}_WRITERS"
    decode = "decode_view" if _has_records(message.fields) else "decode"
    return [
        "",
        "",
        *_tuple_lines(readers, missing + [names.reader(layout) for layout in by_version]),
        *_tuple_lines(writers, missing + [names.writer(layout) for layout in by_version]),
        "",
        "",
        f"def decode_{kind}(buffer: Buffer, position: int, end: int, version: int) -> {message.name}:",
        f'    return {decode}({readers}, "{message.name}", buffer, position, end, version)',
        "",
        "",
        f"def encode_{kind}(message: {message.name}, version: int) -> bytes:",
        f'    return encode({writers}, "{message.name}", message, version)',
        *(_stepwise_lines(message, writers) if message.kind == "Response" else ()),
    ]


def _stepwise_lines(message: Message, writers: str) -> list[str]:
    """Return the function that encodes a long response in steps, between which a broker serves other clients."""
    return [
        "",
        "",
        *signature("begin_response", f"message: {message.name}, version: int", "bytes | Encoding"),
        f'    return begin_encoding({writers}, "{message.name}", message, version)',
    ]


def _tuple_lines(name: str, values: list[str]) -> list[str]:
    if len(values) == 1:
        return [f"{name} = ({values[0]},)"]
    return [f"{name} = (", *(f"{INDENT}{value}," for value in values), ")"]


def _has_records(fields: tuple[Field, ...]) -> bool:
    return any(
        _has_records(field.type.fields) if isinstance(field.type, Struct) else field.type is notation.RECORDS
        for field in fields
    )
