"""studio: a local web page for users who do not use the command line."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deniable.cli import console
from deniable.cli.arguments import AsJson
from deniable.errors import InputError


def studio(
    source: Annotated[Path | None, Parameter(name="FILE")] = None,
    /,
    *,
    port: int = 0,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    keep: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        source: A schema, mechanism.json, a table, or a draft.studio.toml.
        port: Port of the page; 0 for any that is free.
        browser: Open the page in a browser; --no-browser: only print its address.
        keep: Do not stop when the page is closed.
    """
    from deniable.studio import check_installed

    check_installed()
    from deniable.collect.serving import bound_socket, run, server_for
    from deniable.studio.opening import begun
    from deniable.studio.server import Studio

    with ExitStack() as open_until_the_end:
        with console.working("Opening"):
            keeper, place = begun(source)
        if (lock := place.claim()) is None:
            raise InputError(
                f"{keeper.path} is already open at {place.address}; continue there, or stop that "
                "studio first"
            )
        open_until_the_end.callback(lock.release)
        try:
            bound = bound_socket("127.0.0.1", port or place.port)
        except InputError:
            if port:
                raise
            bound = bound_socket("127.0.0.1", 0)  # another program has taken the last one
        open_until_the_end.enter_context(bound)
        place = place.listening(bound.getsockname()[1])

        def end() -> None:
            server.should_exit = True

        server = server_for(Studio(keeper, place, None if keep else end).app())

        def ready() -> None:
            plain = {"address": place.address, "draft": str(keeper.path)}
            console.answer(
                plain, f"Studio: {place.address}", f"Draft: {keeper.path}", as_json=as_json
            )
            sys.stdout.flush()
            if browser:
                import webbrowser

                webbrowser.open(place.address)

        run([(server, bound)], ready)
