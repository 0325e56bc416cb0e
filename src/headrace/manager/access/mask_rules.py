"""The masks of a manager, as the catalog has them now."""

import time
from collections.abc import Callable
from typing import Any

from headrace.client.types import ConsumerRecord
from headrace.manager.access.callers import Caller
from headrace.manager.access.masks import MASKING, MaskRule, RecordMask, listed_rules, record_mask
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.shared_keys import shared_key
from headrace.manager.limits import CALLER_KNOWN_SECONDS

Records = list[ConsumerRecord[Any]]
Masking = Callable[[Records], Records]


class Masks:
    """Knows the rules for half a second; the watch over open streams keeps them as new as that."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._key = catalog.run_here(lambda connection: shared_key(connection, MASKING), writes=True)
        self._rules: list[MaskRule] = []
        self._known_until_s = 0.0

    async def masking(self, topic: str, caller: Caller) -> Masking:
        """Return the function that masks records of the topic for the caller, always by the rules known then."""
        await self.refresh()
        used: list[MaskRule] | None = None
        mask: RecordMask | None = None

        def masked(records: Records) -> Records:
            nonlocal used, mask
            if used is not self._rules:
                used = self._rules
                mask = record_mask(used, topic, caller.role, self._key)
            return records if mask is None else [mask(record) for record in records]

        return masked

    def hides(self, topic: str, caller: Caller) -> bool:
        """Tell whether a rule hides something of the records of the topic from the caller."""
        return record_mask(self._rules, topic, caller.role, self._key) is not None

    async def refresh(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._known_until_s:
            found = await self._catalog.read(listed_rules)
            if found != self._rules:
                self._rules = found
            self._known_until_s = now_s + CALLER_KNOWN_SECONDS

    def forget(self) -> None:
        """Look the rules up again, because this manager has changed them."""
        self._known_until_s = 0.0
