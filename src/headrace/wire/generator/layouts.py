"""The wire layout of one version of a struct. Versions with equal layouts share code."""

from typing import NamedTuple

from headrace.wire.schemas.notation import Default, Field, Message, Primitive


class Member(NamedTuple):
    name: str
    type: "Primitive | Layout"
    repeated: bool
    nullable: bool
    nullable_elsewhere: bool
    tag: int | None
    default: Default


class Layout(NamedTuple):
    struct: str
    flexible: bool
    members: tuple[Member, ...]
    tagged: tuple[Member, ...]


def message_layout(message: Message, version: int) -> Layout:
    return _layout(message, message.name, message.fields, version)


def _layout(message: Message, struct: str, fields: tuple[Field, ...], version: int) -> Layout:
    members = [_member(message, field, version) for field in fields if field.versions.covers(version)]
    return Layout(
        struct,
        message.flexible.covers(version),
        tuple(member for member in members if member.tag is None),
        tuple(sorted((member for member in members if member.tag is not None), key=lambda member: member.tag or 0)),
    )


def _member(message: Message, field: Field, version: int) -> Member:
    if isinstance(field.type, Primitive):
        type_: Primitive | Layout = field.type
    else:
        type_ = _layout(message, message.name + field.type.name, field.type.fields, version)
    nullable = field.nullable.covers(version)
    return Member(
        field.name, type_, field.repeated, nullable, is_nullable(field) and not nullable, field.tag, field.default
    )


def is_nullable(field: Field) -> bool:
    """Return whether it is nullable in any version."""
    return field.nullable.first <= field.nullable.last


def is_fixed(member: Member) -> bool:
    """Return whether the member's bytes can be part of one struct format with its neighbours'."""
    return isinstance(member.type, Primitive) and member.type.size > 0 and not member.repeated


def layout_bytes_min(layout: Layout) -> int:
    """Return the fewest bytes the struct can take."""
    return sum(member_bytes_min(member, layout.flexible) for member in layout.members) + layout.flexible


def member_bytes_min(member: Member, flexible: bool) -> int:
    """Return the fewest bytes the member can take: an empty or null one of variable size is only its length."""
    if member.repeated:
        return 1 if flexible else 4
    if isinstance(member.type, Layout):
        return 1 if member.nullable else layout_bytes_min(member.type)
    if member.type.size:
        return member.type.size
    if flexible:
        return 1
    return 2 if member.type.name == "string" else 4


def element_bytes_min(member: Member, flexible: bool) -> int:
    """Return the fewest bytes one element of a repeated member can take."""
    return member_bytes_min(member._replace(repeated=False, nullable=False), flexible)
