"""The Prometheus metrics page of `headrace pipeline run`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import click

from headrace.cli.failures import Failure


@contextmanager
def serving_metrics(address: tuple[str, int] | None, render: Callable[[], str]) -> Iterator[None]:
    """Serve the page for the duration of the block, if an address is given, and print the address."""
    if address is None:
        yield
        return
    from headrace.model.configs.listeners import address_text
    from headrace.spark.pipelines.scrape import serving

    host, port = address
    with ExitStack() as stack:
        try:
            taken = stack.enter_context(serving(host, port, render))
        except OSError as error:
            raise Failure(f"metrics cannot be served at {address_text(host, port)}: {error.strerror}") from None
        click.echo(f"metrics at http://{address_text(host, taken)}/metrics", err=True)
        yield
