"""The distinguished name in a certificate, as text of RFC 2253: the form from which Kafka makes principals.

The certificate was verified before. Types and escapes are those of Java's `X500Principal.getName()`, so that the
principals in the rules of an existing cluster stay valid.
"""

from typing import NamedTuple

_SEQUENCE, _SET, _OBJECT_ID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_LENGTH_BYTES_MAX = 4

_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes that RFC 2253 names; others are written as their object id and the bytes of their value."""

_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
"""The string types of ASN.1 that Java writes as text."""

_ESCAPED = ',=+<>#;"\\'


class CertificateError(ValueError):
    """The bytes are not a certificate."""


class _Element(NamedTuple):
    tag: int
    content: bytes
    encoded: bytes
    """Tag, length and content."""


def subject_of(certificate: bytes) -> str:
    """Return the distinguished name of the subject of a certificate in DER; raise CertificateError."""
    fields = _elements(_first(_first(certificate)))
    if fields and fields[0].tag == _VERSION:
        fields = fields[1:]
    if len(fields) < 5 or fields[4].tag != _SEQUENCE:  # serial, algorithm, issuer, validity, subject
        raise CertificateError("the certificate has no subject")
    relative_names = [_relative_name(element) for element in _elements(fields[4].content)]
    return ",".join(reversed(relative_names))


def _first(content: bytes) -> bytes:
    """Return the content of the first element, which must be a sequence."""
    elements = _elements(content)
    if not elements or elements[0].tag != _SEQUENCE:
        raise CertificateError("a certificate is a sequence that begins with another one")
    return elements[0].content


def _relative_name(element: _Element) -> str:
    if element.tag != _SET:
        raise CertificateError("a part of the subject is not a set")
    return "+".join(_attribute(each) for each in _elements(element.content))


def _attribute(element: _Element) -> str:
    parts = _elements(element.content)
    if element.tag != _SEQUENCE or len(parts) != 2 or parts[0].tag != _OBJECT_ID:
        raise CertificateError("an attribute of the subject is malformed")
    name, value = _object_id(parts[0].content), parts[1]
    encoding = _ENCODINGS.get(value.tag)
    if name not in _NAMES or encoding is None:
        return f"{_NAMES.get(name, name)}=#{value.encoded.hex()}"
    try:
        return f"{_NAMES[name]}={_escaped(value.content.decode(encoding))}"
    except UnicodeDecodeError:
        raise CertificateError("an attribute of the subject is not text") from None


def _escaped(text: str) -> str:
    body = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    inner = body.strip(" \r")
    lead, trail = body[: len(body) - len(body.lstrip(" \r"))], body[len(body.rstrip(" \r")) :]
    if not inner:
        lead, trail = body, ""
    return "".join(f"\\{char}" for char in lead) + inner + "".join(f"\\{char}" for char in trail)


def _object_id(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] & 0x80:
        raise CertificateError("an object id is malformed")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(content: bytes) -> list[_Element]:
    """Split DER bytes into their elements."""
    found: list[_Element] = []
    at, end = 0, len(content)
    while at < end:
        begin, tag = at, content[at]
        if at + 2 > end:
            raise CertificateError("the certificate is cut off")
        length = content[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= _LENGTH_BYTES_MAX or at + size > end:
                raise CertificateError("a length in the certificate is malformed")
            length = int.from_bytes(content[at : at + size])
            at += size
        if at + length > end:
            raise CertificateError("the certificate is cut off")
        found.append(_Element(tag, content[at : at + length], content[begin : at + length]))
        at += length
    return found
