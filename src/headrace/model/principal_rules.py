"""Rules that make a principal's name of a certificate's distinguished name, as in Kafka (KIP-371).

A rule is `DEFAULT`, which takes the whole name, or `RULE:pattern/replacement/`, which takes the replacement if the
pattern matches the whole name; `L` or `U` at its end changes the case. A slash in pattern or replacement is written
`\\/`, and `$1` is the first group of the pattern. The first rule that matches decides.
"""

import re
from typing import NamedTuple

DEFAULT = "DEFAULT"
RULES_LENGTH_MAX = 16_384
"""Characters of all rules together."""

_RULE = re.compile(r"RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<letters>[LU]?)")
_SEPARATOR = re.compile(r"\s*(?:,\s*|\Z)")
_REFERENCE = re.compile(r"\$(\d)|\\(.)", re.DOTALL)


class PrincipalRule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    letters: str
    """L for lower case, U for upper case, otherwise empty."""

    def name_of(self, distinguished_name: str) -> str | None:
        """Return the principal's name; None if the rule does not match."""
        match = self.pattern.fullmatch(distinguished_name)
        if match is None:
            return None
        name = _REFERENCE.sub(lambda found: _referenced(match, found), self.replacement)
        return {"L": name.lower(), "U": name.upper()}.get(self.letters, name)


def _referenced(match: re.Match[str], found: re.Match[str]) -> str:
    return found[2] if found[1] is None else match[int(found[1])] or ""


class PrincipalRules:
    """The rules of one config value."""

    def __init__(self, text: str) -> None:
        """Parse the rules; raise ValueError with the reason if they are invalid."""
        self._rules: tuple[PrincipalRule, ...] = tuple(_parsed(text))

    def name_of(self, distinguished_name: str) -> str | None:
        """Return the principal's name; None if no rule matches, so that the client must be refused."""
        for rule in self._rules:
            name = rule.name_of(distinguished_name)
            if name:
                return name
        return None


def _parsed(text: str) -> list[PrincipalRule]:
    if len(text) > RULES_LENGTH_MAX:
        raise ValueError(f"is {len(text)} characters long, at most {RULES_LENGTH_MAX} are allowed")
    rules: list[PrincipalRule] = []
    position, text = 0, text.strip() or DEFAULT
    while position < len(text):
        if text.startswith(DEFAULT, position):
            rules.append(PrincipalRule(re.compile("(.*)", re.DOTALL), "$1", ""))
            end = position + len(DEFAULT)
        else:
            found = _RULE.match(text, position)
            if found is None:
                raise ValueError(
                    f'"{text[position : position + 40]}" must look like RULE:pattern/replacement/ or DEFAULT'
                )
            rules.append(_rule(found))
            end = found.end()
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            raise ValueError(f'"{text[end : end + 40]}" follows a rule: separate rules by commas')
        position = separator.end()
    return rules


def _rule(found: re.Match[str]) -> PrincipalRule:
    pattern = found["pattern"].replace("\\/", "/")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f'the pattern "{pattern}" is not a regular expression: {error}') from None
    replacement = found["replacement"].replace("\\/", "/")
    if any(int(reference[1]) > compiled.groups for reference in _REFERENCE.finditer(replacement) if reference[1]):
        raise ValueError(f'the replacement "{replacement}" names a group that "{pattern}" does not have')
    return PrincipalRule(compiled, replacement, found["letters"])


def rules_error(text: str) -> str | None:
    """Return the reason why the rules are invalid, or None."""
    try:
        PrincipalRules(text)
    except ValueError as wrong:
        return str(wrong)
    return None
