"""Regular expressions over topic names that cannot block the broker: they never backtrack, and all work has a limit.

Topic names use a small alphabet, so a character class is a set of characters. An expression becomes an automaton whose
deterministic states are computed while names are matched. Unsupported syntax (backreferences, look-around, flags) is
refused.
"""

from collections.abc import Iterable
from string import ascii_letters, digits

PATTERN_LENGTH_MAX = 1_000
PATTERN_STATES_MAX = 2_000
REPEAT_MAX = 100
NESTING_MAX = 50
KNOWN_STATES_MAX = 1_000
"""Deterministic states that an expression caches; beyond the limit the cache is cleared."""

STEPS_MAX = 2_000_000
"""Steps that matching all topic names may take."""

_LETTERS = frozenset(ascii_letters + digits + "._-")
_OTHER = "\ue000"
"""Represents every character that neither the alphabet nor the expression contains."""

_AT_START, _AT_END = frozenset(("\ue001",)), frozenset(("\ue002",))
"""Represent the positions before the first and after the last character; no name contains these characters."""

_ESCAPED = {
    "d": frozenset(digits),
    "w": frozenset(ascii_letters + digits + "_"),
    "s": frozenset(" "),
}


class PatternRefused(ValueError):
    """The expression is malformed, not supported, or too expensive to match."""


class _Parser:
    """Builds the automaton: a state either consumes a character and has one successor, or consumes none."""

    def __init__(self, text: str, alphabet: frozenset[str]) -> None:
        if len(text) > PATTERN_LENGTH_MAX:
            raise PatternRefused(f"the expression has {len(text)} characters: at most {PATTERN_LENGTH_MAX} are allowed")
        self._text = text
        self._alphabet = alphabet
        self._position = 0
        self._depth = 0
        self.letters: list[frozenset[str] | None] = []
        self.next: list[list[int]] = []

    def parse(self) -> tuple[int, int]:
        start, end = self._alternatives()
        if self._position < len(self._text):
            raise PatternRefused(f'unexpected "{self._text[self._position]}" at character {self._position + 1}')
        return start, end

    def _state(self, letters: frozenset[str] | None = None) -> int:
        if len(self.letters) >= PATTERN_STATES_MAX:
            raise PatternRefused("the expression is too large")
        self.letters.append(letters)
        self.next.append([])
        return len(self.letters) - 1

    def _peek(self) -> str:
        return self._text[self._position] if self._position < len(self._text) else ""

    def _take(self) -> str:
        letter = self._peek()
        if not letter:
            raise PatternRefused("the expression ends too early")
        self._position += 1
        return letter

    def _alternatives(self) -> tuple[int, int]:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise PatternRefused("the groups of the expression are nested too deeply")
        start, end = self._state(), self._state()
        while True:
            first, last = self._sequence()
            self.next[start].append(first)
            self.next[last].append(end)
            if self._peek() != "|":
                break
            self._take()
        self._depth -= 1
        return start, end

    def _sequence(self) -> tuple[int, int]:
        start = end = self._state()
        while self._peek() not in ("", "|", ")"):
            began = self._position
            first, last = self._atom()
            low, high = self._repeat()
            if (low, high) == (1, 1):
                self.next[end].append(first)
                end = last
            else:
                end = self._repeated(end, began, low, high)
        return start, end

    def _repeated(self, end: int, began: int, low: int, high: int | None) -> int:
        """Repeat the atom that was parsed from `began` on, once for each time that it may occur."""
        after = self._position
        for count in range(max(low, high or 0, 1) if high is None or high > 0 else 0):
            self._position = began
            first, last = self._atom()
            skip = self._state()
            self.next[end].append(first)
            self.next[last].append(skip)
            if count >= low:
                self.next[end].append(skip)
            if high is None and count == max(low, 1) - 1:
                self.next[skip].append(first)
            end = skip
        self._position = after
        return end

    def _repeat(self) -> tuple[int, int | None]:
        low: int = 1
        high: int | None = 1
        sign = self._peek()
        if sign in ("*", "+", "?"):
            self._take()
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        elif sign == "{":
            low, high = self._counts()
        else:
            return low, high
        if self._peek() in ("?", "+"):
            self._take()  # lazy or possessive, which makes no difference when the whole name must match
        return low, high

    def _counts(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._position)
        first, comma, last = self._text[self._position + 1 : end].partition(",") if end >= 0 else ("", "", "")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise PatternRefused("a repetition must have the form {2}, {2,} or {2,5}")
        low = int(first)
        high = None if comma and not last else int(last or first)
        if low > REPEAT_MAX or (high is not None and not low <= high <= REPEAT_MAX):
            raise PatternRefused(f"a repetition must ascend and not exceed {REPEAT_MAX}")
        self._position = end + 1
        return low, high

    def _atom(self) -> tuple[int, int]:
        letter = self._take()
        if letter == "(":
            if self._text.startswith("?:", self._position):
                self._position += 2
            elif self._peek() == "?":
                raise PatternRefused("groups that begin with (? are not supported, except for (?:")
            start, end = self._alternatives()
            if self._take() != ")":
                raise PatternRefused("a group is not closed")
            return start, end
        if letter == "[":
            return self._one_of(self._letter_class())
        if letter == ".":
            return self._one_of(self._alphabet)
        if letter == "\\":
            return self._one_of(self._escape())
        if letter in "^$":
            return self._one_of(_AT_START if letter == "^" else _AT_END)
        if letter in "*+?{)":
            raise PatternRefused(f'"{letter}" has no meaning at character {self._position}')
        return self._one_of(frozenset(letter))

    def _one_of(self, letters: frozenset[str]) -> tuple[int, int]:
        start, end = self._state(letters), self._state()
        self.next[start].append(end)
        return start, end

    def _escape(self) -> frozenset[str]:
        letter = self._take()
        if letter in _ESCAPED:
            return _ESCAPED[letter]
        if letter.lower() in _ESCAPED:
            return self._alphabet - _ESCAPED[letter.lower()]
        if letter in ascii_letters + digits:
            raise PatternRefused(f'"\\{letter}" is not supported')
        return frozenset(letter)

    def _letter_class(self) -> frozenset[str]:
        negated = self._peek() == "^"
        if negated:
            self._take()
        found: set[str] = set()
        first = True
        while first or self._peek() != "]":
            first = False
            letter = self._take()
            if letter == "\\":
                found |= self._escape()
                continue
            if self._peek() == "-" and self._text[self._position + 1 : self._position + 2] not in ("]", ""):
                self._take()
                last = self._take()
                if last < letter:
                    raise PatternRefused(f"the range {letter}-{last} is not ascending")
                found |= {each for each in self._alphabet if letter <= each <= last}
            else:
                found.add(letter)
        self._take()
        return self._alphabet - found if negated else frozenset(found)


class NamePattern:
    """A regular expression for names of topics, or of other things with `more_letters`."""

    def __init__(self, text: str, *, more_letters: str = "") -> None:
        """Compile an expression. `more_letters` extends the alphabet, for names that are not names of topics."""
        self._alphabet = _LETTERS | {*more_letters, *text, _OTHER} if more_letters else _LETTERS
        parser = _Parser(text, self._alphabet)
        start, self._end = parser.parse()
        self._letters, self._next = parser.letters, parser.next
        self._steps_left = STEPS_MAX
        self._start = self._closure((start,), anchor=_AT_START)
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matching(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that match as a whole. Raises PatternRefused if that takes too many steps."""
        self._steps_left = STEPS_MAX
        return tuple(name for name in names if self._matches(name))

    def _matches(self, name: str) -> bool:
        states = self._start
        for letter in name:
            if not states:
                return False
            states = self._after(states, letter if letter in self._alphabet else _OTHER)
        return self._end in states or self._end in self._closure(tuple(states), anchor=_AT_END)

    def _after(self, states: frozenset[int], letter: str) -> frozenset[int]:
        self._spend(1)
        found = self._known.get((states, letter))
        if found is None:
            if len(self._known) >= KNOWN_STATES_MAX:
                self._known.clear()
            self._spend(len(states))
            taken = [state for state in states if letter in (self._letters[state] or ())]
            found = self._closure(tuple(after for state in taken for after in self._next[state]))
            self._known[states, letter] = found
        return found

    def _closure(self, states: tuple[int, ...], anchor: frozenset[str] | None = None) -> frozenset[int]:
        """Return the states with all that are reachable without a character; `anchor` is the anchor that holds here."""
        found, left = set(states), list(states)
        while left:
            self._spend(1)
            state = left.pop()
            if self._letters[state] is None or (anchor is not None and self._letters[state] == anchor):
                for after in self._next[state]:
                    if after not in found:
                        found.add(after)
                        left.append(after)
        return frozenset(found)

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise PatternRefused("matching all topics takes too long: use a simpler expression")
