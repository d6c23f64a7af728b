"""ledger show, check, export, budget: sums of ε over the releases of a population."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from deniable.cli import console, groups
from deniable.cli.arguments import COUNTED, AsJson, FileOrStream, Force
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.ledger import Ledger

ledger_app = App(name="ledger", group_commands=groups.COMMANDS)

Source = Annotated[
    Path | None, Parameter(name="LEDGER", help="The ledger; by default the one of DENIABLE_LEDGER.")
]


def _opened(source: Path | None) -> "Ledger":
    from deniable.ledger import Ledger
    from deniable.ledger.book import usual_ledger

    ledger = usual_ledger() if source is None else Ledger(source)
    if ledger is None:
        raise InputError("name the file of the ledger, or set DENIABLE_LEDGER")
    return ledger


@ledger_app.command
def show(source: Source = None, /, *, as_json: AsJson = False) -> None:
    """Print for every population ε of a person in all releases, by column, and the rest of its
    budget.

    Example: deniable ledger show people.ledger
    """
    from deniable.ledger import balances

    plain = [balance.to_plain() for balance in balances(_opened(source).events()).values()]
    if as_json:
        console.print_json({"populations": plain})
        return
    console.show_ledger(plain)
    console.say(
        "ε in nats, of the releases in this ledger only. Given the rest, they are upper bounds."
    )


@ledger_app.command
def check(
    source: Source = None,
    /,
    *,
    release: Annotated[
        list[Path] | None,
        Parameter(
            negative=(), help="Folder of a release that should be in the ledger; may be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that no event was altered or is missing, and list irregular releases.

    Example: deniable ledger check people.ledger --release release
    """
    from deniable.ledger import balances, stored_releases
    from deniable.ledger.book import same_people, unfinished
    from deniable.release.record import in_ledger

    ledger = _opened(source)
    events = ledger.events()
    releases = stored_releases(events)
    for folder in release or []:
        in_ledger(folder, releases)
    remarks = [
        f"the release of population '{r.population}' in event {r.number} has not ended: it is "
        "being made, or it died where rows may have been left; it counts"
        for r in unfinished(events)
    ]
    remarks += [
        f"the release of population '{r.population}' in event {r.number} has rows and no folder: "
        "it is being made in parts, or was interrupted when its rows were complete; it counts, "
        "since they may have been seen"
        for r in releases
        if r.counted
        and not r.withdrawn
        and r.published is None
        # Rows of randomize are printed as drawn; those of a study are published by its export.
        and r.what != "randomize"
        and not r.what.startswith("collect ")
    ]
    remarks += [
        f"populations '{first}' and '{second}' have releases of exactly the same people: their "
        "levels add up"
        for first, second in same_people(events)
    ]
    remarks += [
        f"population '{balance.population}' is over its budget"
        for balance in balances(events).values()
        if not balance.allows(0.0)
    ]
    last = events[-1]
    if as_json:
        console.print_json({"events": last.number, "digest": last.digest, "remarks": remarks})
        return
    for remark in remarks:
        console.say(remark)
    console.say(
        f"{last.number} events, none altered and none missing up to {last.time}. Note this digest "
        "elsewhere: it reveals a truncated or replaced ledger."
    )
    console.say(last.digest)


@ledger_app.command
def export(
    source: Source = None,
    /,
    *,
    output: Annotated[
        FileOrStream, Parameter(help="CSV file to write, or - for the screen.")
    ] = "-",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a row per release: time, population, command, levels.

    Example: deniable ledger export people.ledger --output releases.csv
    """
    from deniable.atomic_files import write_file
    from deniable.ledger import stored_releases
    from deniable.statement.record import to_json

    rows = [release.to_plain() for release in stored_releases(_opened(source).events())]
    if as_json:
        content = to_json({"releases": rows})
    else:
        columns = [
            *("event", "time", "population", "command", "epsilon", "rows_of_person"),
            *("epsilon_of_person", "counted", "published", "withdrawn"),
        ]
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*columns, "attributes"])
        for row in rows:
            levels = " ".join(
                f"{name}={'none' if one['epsilon'] is None else one['epsilon']}"
                for name, one in row["attributes"].items()
            )
            writer.writerow([*("" if row[c] is None else row[c] for c in columns), levels])
        content = text.getvalue().encode()
    if output == "-":
        console.write_data(content)
    else:
        write_file(Path(output), content, overwrite=force)


@ledger_app.command
def budget(
    source: Source = None,
    /,
    *,
    epsilon: Annotated[float, Parameter(help="Largest ε of all releases together, in nats.")],
    population: Annotated[
        str | None, Parameter(help="Population (default: the one without a name).")
    ] = None,
    new_population: Annotated[
        bool, COUNTED, Parameter(help="Add the population, people who are not in the ledger.")
    ] = False,
) -> None:
    """Set the budget of a population: a release beyond it is refused before a row is read.

    The last budget is valid; earlier ones remain in the ledger.

    Example: deniable ledger budget people.ledger --epsilon 10
    """
    from deniable.ledger import Population, balances, compared

    ledger = _opened(source)
    name = Population(ledger).name if population is None else Population(ledger, population).name
    if not ledger.exists:
        console.note(f"{ledger.path} is a new ledger, in which no earlier release counts")
    ledger.set_budget(name, epsilon, new=new_population)
    balance = balances(ledger.events())[compared(name)]
    console.say(f"{balance.left_text.capitalize()} for population '{balance.population}'")
