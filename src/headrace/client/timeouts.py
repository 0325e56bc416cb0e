"""Check timeout arguments: habits from other clients, such as a positional number of seconds, get a hint."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from headrace.client.errors import InvalidArgument

P = ParamSpec("P")
T = TypeVar("T")

SECONDS_MAX = 100
"""A smaller number is probably meant in seconds."""


def named_timeout(method: Callable[P, T]) -> Callable[P, T]:
    """Refuse a `timeout` argument, and positional arguments where only keywords are accepted, with a hint."""
    parameters = list(inspect.signature(method).parameters.values())
    names = [each.name for each in parameters[1:]]
    positional_count = sum(each.kind is not each.KEYWORD_ONLY for each in parameters)

    def check(arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        if "timeout" in options:
            raise InvalidArgument(_no_timeout(method.__name__, options["timeout"]))
        if len(arguments) > positional_count:
            raise InvalidArgument(_by_name(method.__name__, dict(zip(names, arguments[1:], strict=False))))

    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def awaited(*arguments: Any, **options: Any) -> Any:
            check(arguments, options)
            return await method(*arguments, **options)

        return cast("Callable[P, T]", awaited)

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        check(arguments, options)
        return method(*arguments, **options)

    return cast("Callable[P, T]", called)


def _no_timeout(name: str, timeout: object) -> str:
    if isinstance(timeout, int | float):
        return (
            f"{name}() has no argument timeout: write {name}(timeout_ms={timeout * 1000:g}) to wait {timeout:g} seconds"
        )
    return f"{name}() has no argument timeout: use timeout_ms, in milliseconds"


def _by_name(name: str, given: Mapping[str, Any]) -> str:
    text = f"{name}() takes its arguments by name: {name}({_shown(given)})"
    time = given.get("timeout_ms")
    if isinstance(time, int | float) and 0 < time < SECONDS_MAX:
        text += f", in milliseconds; for {time:g} seconds {name}({_shown({**given, 'timeout_ms': time * 1000})})"
    return text


def _shown(given: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in given.items()
    )
