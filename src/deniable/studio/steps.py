"""What can be done in the page: one step for every button."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tomli_w

from deniable.atomic_files import write_file
from deniable.errors import InputError
from deniable.studio import answers, declaring, exports, opening
from deniable.studio.draft import MOST_PINS, Draft
from deniable.studio.making import Job, options
from deniable.studio.numbers import plain, rounded_up
from deniable.studio.sentences import texts
from deniable.studio.state import LANGUAGES, State
from deniable.studio.wish import tables_text, taken
from deniable.studio.working import Gone, in_process


@dataclass(frozen=True)
class Asked:
    """A step that somebody takes.

    Args:
        studio: where.
        form: what was typed.
        gone: whether they have gone since.
    """

    studio: State
    form: Mapping[str, str]
    gone: Gone

    @property
    def separators(self) -> str:
        """How numbers are written in the language of the page that the form was in."""
        spoken = self.form.get("language", self.studio.language)
        return str(texts(spoken if spoken in LANGUAGES else LANGUAGES[0])["separators"])


Step = Callable[[Asked], Awaitable[str | None]]
"""Returns the view to go to, if it is another."""


async def wish(asked: Asked) -> None:
    """Take over what stands in the controls."""
    controls = {
        name[2:]: taken(name[2:], text, asked.separators)
        for name, text in asked.form.items()
        if name.startswith("w.")
    }
    asked.studio.keeper.change(lambda draft: draft.with_wish(**controls))


async def undo(asked: Asked) -> None:
    """Go back a step."""
    asked.studio.keeper.undo()


async def redo(asked: Asked) -> None:
    """Take back what was undone."""
    asked.studio.keeper.redo()


async def speak(asked: Asked) -> None:
    """Show the page in another language, with all that was typed into it."""
    studio, form = asked.studio, asked.form
    await wish(asked)
    kept = {name[5:]: text for name, text in form.items() if name.startswith("kept.")}
    studio.typed = kept or {f"f-{name}": text for name, text in form.items()}
    if form.get("of") in _MAKING:
        studio.filled[form["of"]] = form
    if form.get("which") in LANGUAGES:
        studio.language = form["which"]


_MAKING = ("release", "study", "ask")


async def add_table(asked: Asked) -> None:
    """Add a table of interest."""
    await wish(asked)
    names = [name for i in "123" if (name := asked.form.get(f"table.{i}"))]
    if not names or len(set(names)) < len(names):
        raise InputError("choose one to three attributes, each once")
    tables = asked.studio.understood().tables
    if names not in tables:
        text = tables_text([*tables, names])
        asked.studio.keeper.change(lambda draft: draft.with_wish(tables=text))


async def remove_table(asked: Asked) -> None:
    """Take a table of interest away."""
    await wish(asked)
    tables, gone = asked.studio.understood().tables, asked.form.get("which")
    left = tables_text(table for table in tables if "\t".join(table) != gone)
    asked.studio.keeper.change(lambda draft: draft.with_wish(tables=left))


async def solve(asked: Asked) -> None:
    """Find the smallest ε that is as accurate as wished."""
    await wish(asked)
    studio = asked.studio
    wished, version = studio.understood(), studio.keeper.version
    wrong = {**wished.problems}
    is_open = "epsilon" in wished.unchosen and wrong.pop("epsilon")
    if not is_open and "epsilon" not in {**wished.arguments, **wrong}:
        raise InputError("this finds a total: choose a total, and a method that takes one")
    if wrong:
        raise InputError(next(iter(wrong.values())))
    studio.answers.drop()
    finding = asyncio.create_task(in_process(answers.solve, wished))
    while not finding.done():
        await asyncio.wait({finding}, timeout=0.25)
        if studio.keeper.version != version or await asked.gone():
            finding.cancel()
            raise InputError("the wishes were changed while ε was looked for; press it again")
    epsilon, decides = await finding
    studio.keeper.change(lambda draft: draft.with_wish(epsilon=rounded_up(epsilon)))
    studio.said = {"solve": ", ".join(decides)}


async def choose(asked: Asked) -> None:
    """Take an ε of those that are offered."""
    await wish(asked)
    asked.studio.keeper.change(lambda draft: draft.with_wish(epsilon=asked.form.get("which", "")))


async def mine(asked: Asked) -> None:
    """Save a draft in the place of one that was changed elsewhere."""
    keeper = asked.studio.keeper
    draft = Draft.from_text(asked.form.get("text", ""), keeper.path)
    keeper.change(lambda _: draft, over=True)


async def pin(asked: Asked) -> None:
    """Keep the wish to compare others with."""
    await wish(asked)

    def pinned(draft: Draft) -> Draft:
        if len(draft.pins) >= MOST_PINS:
            raise InputError(f"at most {MOST_PINS} are compared; take one away first")
        used = {one["pin"] for one in draft.pins}
        name = next(letter for letter in "ABCDE" if letter not in used)
        return replace(draft, pins=(*draft.pins, {**draft.wish, "pin": name}))

    asked.studio.keeper.change(pinned)


async def unpin(asked: Asked) -> None:
    """Compare with this one no more."""

    def without(draft: Draft) -> Draft:
        left = tuple(one for one in draft.pins if one["pin"] != asked.form.get("which"))
        return replace(draft, pins=left)

    asked.studio.keeper.change(without)


async def use(asked: Asked) -> None:
    """Go back to a wish that was kept."""

    def back(draft: Draft) -> Draft:
        wishes = [dict(one) for one in draft.pins if one["pin"] == asked.form.get("which")]
        for wish in wishes:
            del wish["pin"]
        return replace(draft, wish=wishes[0]) if wishes else draft

    asked.studio.keeper.change(back)


async def change(name: str, asked: Asked) -> None:
    """Change the schema."""
    edges = [plain(edge, asked.separators) for edge in asked.form.get("bins", "").split()]
    form = {**asked.form, "bins": " ".join(edges)}
    asked.studio.keeper.change(lambda draft: declaring.CHANGES[name](draft, form))


async def open_file(asked: Asked) -> str:
    """Begin with a file of the page's own folder."""
    path = opening.path_in(asked.studio.folder, asked.form.get("which", ""))
    draft = await opening.draft_of(path)
    if draft.table:
        draft = replace(draft, table=str(path.relative_to(asked.studio.folder)))
    asked.studio.keeper.change(lambda _: draft)
    return "schema" if draft.table else "design"


async def example(asked: Asked) -> str:
    """Begin with the example that the package brings, in a folder of its own."""
    studio = asked.studio
    schema = studio.folder / "example" / "insurance.toml"
    if not schema.exists():
        studio.begin("example", Job(["example", "example"], studio.folder))
        job = await studio.made("example", asked.gone)
        if job.status:
            raise InputError(" ".join(job.lines))
    draft = await opening.draft_of(schema)
    studio.keeper.change(lambda _: replace(draft, table="example/insurance.csv"))
    return "design"


async def names(asked: Asked) -> str:
    """Begin with names of columns."""
    draft = opening.of_names(asked.form.get("names", ""))
    asked.studio.keeper.change(lambda _: draft)
    return "schema"


# --- what is made: by commands ------------------------------------------------------------------


async def _mechanism(asked: Asked) -> Path:
    """Write the mechanism that is shown into the cache, and return the file.

    Raises:
        InputError: if there is none.
    """
    studio = asked.studio
    wished = studio.understood()
    answer = None if wished.problems else await studio.answer(wished, asked.gone)
    if not answer or "mechanism" not in answer:
        raise InputError("there is no design yet; wait for it, or mend what is said of the wishes")
    studio.cache.mkdir(parents=True, exist_ok=True)
    path = studio.cache / f"{wished.digest}.json"  # a command reads it later, another wish or not
    write_file(path, answer["mechanism"].encode(), overwrite=True)
    return path


async def release(asked: Asked) -> None:
    """Make the release."""
    form = asked.form
    if not form.get("table") or not form.get("output"):
        raise InputError("name the table with the people's rows, and the folder to make")
    mechanism = await _mechanism(asked)
    given = ["share", form["table"], f"--mechanism={mechanism}", *options(form)]
    asked.studio.begin(
        "release", Job(given, asked.studio.folder, form["output"], of=asked.studio.state)
    )


async def study(asked: Asked) -> None:
    """Open a study with the mechanism that is shown: its questionnaire, its folder."""
    studio, form = asked.studio, asked.form
    if not form.get("output"):
        raise InputError("name the folder to make")
    mechanism = await _mechanism(asked)
    plain = exports.questionnaire(studio.keeper.draft.made(), form)
    questionnaire = studio.cache / "questionnaire.toml"
    write_file(questionnaire, tomli_w.dumps(plain).encode(), overwrite=True)
    given = [f"--mechanism={mechanism}", f"--questionnaire={questionnaire}"]
    job = Job(["collect", "open", *given, *options(form)], studio.folder, form["output"])
    job.of = studio.state
    studio.begin("study", job)


async def rehearse(asked: Asked) -> None:
    """Serve the study on this machine, to try it."""
    studio = asked.studio
    folder = asked.form.get("output", "")
    job = Job(["collect", "serve", folder, "--port=0", "--json"], studio.folder, folder)
    studio.begin("rehearsal", job)


async def ask(asked: Asked) -> None:
    """Estimate a table of a release."""
    studio, form = asked.studio, asked.form
    of = [name for i in "123" if (name := form.get(f"table.{i}", ""))]
    if not of or not form.get("release"):
        raise InputError("name the release, and one to three attributes")
    studio.cache.mkdir(parents=True, exist_ok=True)
    given = ["estimate", form["release"], f"--of={','.join(map(_quoted, of))}", "--json"]
    plot = studio.cache / "answer.svg" if len(of) < 3 else ""  # of three, there is none
    more = [f"--plot={plot}", "--force"] if plot else []
    studio.begin("answer", Job([*given, *more], studio.folder, str(plot)))
    await studio.made("answer", asked.gone)


def _quoted(name: str) -> str:
    """Return a name as it stands in a list of names: as in CSV, if it has a comma or such."""
    plain = name == name.strip() and not set(name) & set(',"')
    return name if plain else '"' + name.replace('"', '""') + '"'


async def stop(asked: Asked) -> None:
    """Stop what is being made, and wait until it has."""
    name = asked.form.get("which", "")
    if job := asked.studio.jobs.get(name):
        job.stop()
        await asked.studio.made(name, asked.gone)


STEPS: dict[str, Step] = {
    "wish": wish,
    "undo": undo,
    "redo": redo,
    "speak": speak,
    "add_table": add_table,
    "remove_table": remove_table,
    "solve": solve,
    "choose": choose,
    "mine": mine,
    "pin": pin,
    "unpin": unpin,
    "use": use,
    "open": open_file,
    "example": example,
    "names": names,
    "release": release,
    "study": study,
    "rehearse": rehearse,
    "ask": ask,
    "stop": stop,
    **{name: partial(change, name) for name in declaring.CHANGES},
}
"""The steps, by the name of their button."""

UNTIED = frozenset({"speak", "rehearse", "ask", "stop"})
"""Steps that are the same whatever the draft is."""

REPEATED = frozenset({"undo", "redo", "release", "study"})
"""Steps that are refused where the draft is another than the page showed."""
