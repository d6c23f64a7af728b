"""Steps of the page: one function per button."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from deniable.atomic_files import write_file
from deniable.errors import InputError
from deniable.studio import answers, declaring, exports, opening
from deniable.studio.draft import MOST_PINS, Draft
from deniable.studio.importing import OPTIONS, Reading, reading_in
from deniable.studio.making import CHECKED, Job, options
from deniable.studio.numbers import plain, rounded_up
from deniable.studio.paths import kept_path, new_path, path_in, read_path
from deniable.studio.request import tables_text, taken
from deniable.studio.sentences import texts
from deniable.studio.state import LANGUAGES, State
from deniable.studio.working import Gone, in_process
from deniable.tables.formats import TABLE_ENDINGS


@dataclass(frozen=True)
class Post:
    """A step with its form and state."""

    studio: State
    form: Mapping[str, str]
    gone: Gone

    @property
    def separators(self) -> str:
        """How numbers are written in the language of the page that the form was in."""
        spoken = self.form.get("language", self.studio.language)
        return str(texts(spoken if spoken in LANGUAGES else LANGUAGES[0])["separators"])


Step = Callable[[Post], Awaitable[str | None]]
"""Returns the view to go to, if it is another."""


async def update(post: Post) -> None:
    """Take over the values of the controls."""
    controls = {
        name[2:]: taken(name[2:], text, post.separators)
        for name, text in post.form.items()
        if name.startswith("w.")
    }
    post.studio.keeper.change(lambda draft: draft.with_controls(**controls))


async def undo(post: Post) -> None:
    """Go back a step."""
    post.studio.keeper.undo()


async def redo(post: Post) -> None:
    """Redo the step undone last."""
    post.studio.keeper.redo()


async def speak(post: Post) -> None:
    """Show the page in another language, with all that was typed into it."""
    studio, form = post.studio, post.form
    await update(post)
    kept = {name[5:]: text for name, text in form.items() if name.startswith("kept.")}
    studio.typed = kept or {f"f-{name}": text for name, text in form.items()}
    if form.get("of") in _MAKING:
        studio.filled[form["of"]] = form
    if form.get("which") in LANGUAGES:
        studio.language = form["which"]


_MAKING = ("release", "study", "estimate")


async def add_table(post: Post) -> None:
    """Add a table of interest."""
    await update(post)
    names = [name for i in "123" if (name := post.form.get(f"table.{i}"))]
    if not names or len(set(names)) < len(names):
        raise InputError("choose one to three attributes, each once")
    tables = post.studio.design_request().tables
    if names not in tables:
        text = tables_text([*tables, names])
        post.studio.keeper.change(lambda draft: draft.with_controls(tables=text))


async def remove_table(post: Post) -> None:
    """Take a table of interest away."""
    await update(post)
    tables, gone = post.studio.design_request().tables, post.form.get("which")
    left = tables_text(table for table in tables if "\t".join(table) != gone)
    post.studio.keeper.change(lambda draft: draft.with_controls(tables=left))


async def solve(post: Post) -> None:
    """Find the smallest ε that is as accurate as requested."""
    await update(post)
    studio = post.studio
    request, version = studio.design_request(), studio.keeper.version
    wrong = {**request.problems}
    is_open = "epsilon" in request.unchosen and wrong.pop("epsilon")
    if not is_open and "epsilon" not in {**request.arguments, **wrong}:
        raise InputError("this finds a total: choose a total, and a method that takes one")
    if wrong:
        raise InputError(next(iter(wrong.values())))
    studio.answers.drop()
    finding = asyncio.create_task(in_process(answers.solve, request))
    while not finding.done():
        await asyncio.wait({finding}, timeout=0.25)
        if studio.keeper.version != version or await post.gone():
            finding.cancel()
            raise InputError(
                "the request was changed during the search for ε; press the button again"
            )
    epsilon, decides = await finding
    studio.keeper.change(lambda draft: draft.with_controls(epsilon=rounded_up(epsilon)))
    studio.solved = studio.state, ", ".join(decides)


async def choose(post: Post) -> None:
    """Take an ε of those that are offered."""
    await update(post)
    post.studio.keeper.change(lambda draft: draft.with_controls(epsilon=post.form.get("which", "")))


async def mine(post: Post) -> None:
    """Save a draft in the place of one that was changed elsewhere."""
    keeper = post.studio.keeper
    draft = Draft.from_text(post.form.get("text", ""), keeper.path)
    keeper.change(lambda _: draft, over=True)


async def pin(post: Post) -> None:
    """Store the request for comparison."""
    await update(post)

    def pinned(draft: Draft) -> Draft:
        if len(draft.pins) >= MOST_PINS:
            raise InputError(f"at most {MOST_PINS} are compared; take one away first")
        used = {one["pin"] for one in draft.pins}
        name = next(letter for letter in "ABCDE" if letter not in used)
        return replace(draft, pins=(*draft.pins, {**draft.controls, "pin": name}))

    post.studio.keeper.change(pinned)


async def unpin(post: Post) -> None:
    """Compare with this one no more."""

    def without(draft: Draft) -> Draft:
        left = tuple(one for one in draft.pins if one["pin"] != post.form.get("which"))
        return replace(draft, pins=left)

    post.studio.keeper.change(without)


async def use(post: Post) -> None:
    """Return to a stored request."""

    def back(draft: Draft) -> Draft:
        stored = [dict(one) for one in draft.pins if one["pin"] == post.form.get("which")]
        for controls in stored:
            del controls["pin"]
        return replace(draft, controls=stored[0]) if stored else draft

    post.studio.keeper.change(back)


async def change(name: str, post: Post) -> None:
    """Change the schema."""
    form = dict(post.form)
    for key in ("bins", "range"):
        numbers = [plain(text, post.separators) for text in form.get(key, "").split()]
        form[key] = " ".join(numbers)
    post.studio.keeper.change(lambda draft: declaring.CHANGES[name](draft, form))


async def open_file(post: Post) -> str:
    """Begin with a file of the page's own folder; a table that cannot be read is shown with the
    options for it."""
    studio, which = post.studio, post.form.get("which", "")
    path = path_in(studio.folder, which)
    studio.unread = {}
    try:
        draft = await opening.draft_of(path, Reading(which, post.form, {}).file_format)
    except InputError:
        if path.is_file() and path.name.lower().endswith(TABLE_ENDINGS):
            studio.unread = {**post.form, "which": which}
        raise
    if draft.table:
        draft = replace(draft, table=str(path.relative_to(studio.folder.resolve())))
    studio.keeper.change(lambda _: draft)
    if "release" in studio.filled:
        of_table = {"table", "person", "drop_other_columns", *OPTIONS}
        left = {k: v for k, v in studio.filled["release"].items() if k not in of_table}
        studio.filled["release"] = left
    return "schema" if draft.table else "design"


async def roles(post: Post) -> None:
    """Assign columns of the table new roles; newly randomized ones are drafted again."""
    studio, draft = post.studio, post.studio.keeper.draft
    given = {name: post.form.get(f"role.{i}", "") for i, name in enumerate(draft.read)}
    wanted = {name: role for name, role in given.items() if role in declaring.ROLES}
    found: dict[str, Any] = {}
    declared = {name for one in draft.attributes for name in declaring.columns_in(one)}
    new = [n for n, role in wanted.items() if role == "randomize" and n not in declared]
    if any(not draft.read[name] for name in new):
        file_format = Reading(draft.table, {}, draft.schema.get("file", {})).file_format
        again = await opening.draft_of(path_in(studio.folder, draft.table), file_format)
        found = {name: one for one in again.attributes for name in declaring.columns_in(one)}
    studio.keeper.change(lambda draft: declaring.with_roles(draft, wanted, found))


async def look(post: Post) -> None:
    """Show the first rows of the table to release, as it would be read."""
    post.studio.filled["release"] = post.form


async def example(post: Post) -> str:
    """Begin with the example that the package brings, in a folder of its own."""
    studio = post.studio
    schema = studio.folder / "example" / "insurance.toml"
    if not schema.exists():
        studio.begin("example", Job(["example", "example"], studio.folder))
        job = await studio.made("example", post.gone)
        if job.status:
            raise InputError(" ".join(job.lines))
    draft = await opening.draft_of(schema)
    studio.keeper.change(lambda _: replace(draft, table="example/insurance.csv"))
    return "design"


async def names(post: Post) -> str:
    """Begin with names of columns, yes or no until edited."""
    found = opening.names_in(post.form.get("names", ""))
    draft = Draft({"attribute": [opening.yes_or_no(name) for name in found]})
    post.studio.keeper.change(lambda _: draft)
    return "schema"


# --- jobs ---------------------------------------------------------------------------------------


async def _mechanism(post: Post) -> Path:
    """Write the mechanism that is shown into the cache, and return the file."""
    studio = post.studio
    request = studio.design_request()
    answer = None if request.problems else await studio.answer(request, post.gone)
    if not answer or "mechanism" not in answer:
        raise InputError("there is no design yet; wait for it, or correct the request")
    path = studio.mechanism_file(request)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, answer["mechanism"].encode(), overwrite=True)
    return path


async def _check(of: str, given: list[str], post: Post) -> str:
    """Run a command's dry run, and return the check view after at most two seconds."""
    studio, name = post.studio, f"check_{of}"
    studio.filled[of] = studio.filled[name] = post.form
    studio.from_check.pop(of, None)
    await stop(replace(post, form={"which": name}))
    job = Job([*given, *CHECKED], studio.folder)
    studio.begin(name, job)
    for _ in range(40):
        if job.status is None:
            await asyncio.sleep(0.05)
    return name


def _typed(form: Mapping[str, str]) -> dict[str, str]:
    apart = ("which", "at", "of", "language")
    return {name: text for name, text in form.items() if text and name not in apart}


async def make(of: str, post: Post) -> str:
    """Run the checked command; check again if that fails, or first if the form has changed."""
    studio, name = post.studio, f"check_{of}"
    check, form = studio.jobs.get(name), studio.filled.get(name)
    if form and _typed(post.form) != _typed(form):
        return await {"release": release, "study": study}[of](post)
    if check is None or form is None or check.status != 0 or not studio.is_of_now(check):
        raise InputError("the form has changed since the last check; check it first")
    given = [word for word in check.arguments if word not in CHECKED]
    job = Job(given, studio.folder, form["output"], of=studio.state)

    def then() -> None:
        if job.status:
            studio.begin(name, Job(check.arguments, studio.folder))

    studio.begin(of, job, then)
    studio.from_check[of] = job
    return name


async def release(post: Post) -> str:
    """Check the release."""
    form, folder = dict(post.form), post.studio.folder
    reading = reading_in(post.studio, "release")
    if reading is None or not form.get("output"):
        raise InputError("name the table with the people's rows, and the folder to make")
    path_in(folder, reading.table)
    form["output"] = new_path(folder, form["output"])
    if form.get("sign"):
        form["sign"] = read_path(folder, form["sign"])
    if form.get("ledger"):
        elsewhere = bool(form.get("ledger_elsewhere"))
        form["ledger"] = kept_path(folder, form["ledger"], elsewhere=elsewhere)
    mechanism = await _mechanism(post)
    table = read_path(folder, reading.table)
    given = ["share", table, f"--mechanism={mechanism}", *reading.options, *options(form)]
    return await _check("release", given, replace(post, form=form))


async def study(post: Post) -> str:
    """Check a study with the mechanism that is shown: its questionnaire, its folder."""
    studio, form = post.studio, dict(post.form)
    if not form.get("output"):
        raise InputError("name the folder to make")
    form["output"] = new_path(studio.folder, form["output"])
    mechanism = await _mechanism(post)
    plain = exports.questionnaire(studio.keeper.draft.made(), form)
    questionnaire = studio.cache / "questionnaire.toml"
    write_file(questionnaire, tomli_w.dumps(plain).encode(), overwrite=True)
    given = [f"--mechanism={mechanism}", f"--questionnaire={questionnaire}"]
    return await _check("study", ["collect", "open", *given, *options(form)], post)


async def rehearse(post: Post) -> None:
    """Serve the study on this machine, to try it."""
    studio = post.studio
    path_in(studio.folder, post.form.get("output", ""))
    folder = read_path(studio.folder, post.form.get("output", ""))
    job = Job(
        ["collect", "serve", folder, "--port=0", "--json"], studio.folder, folder, serves=True
    )
    studio.begin("rehearsal", job)


async def estimate(post: Post) -> None:
    """Start a query of a release: a table, a model, synthetic copies, or combined results."""
    studio, form = post.studio, post.form
    kind = form.get("kind", "table")
    if kind != "combine" and not form.get("release"):
        raise InputError("name the folder of the release")
    release = read_path(studio.folder, form.get("release", ""))
    where = [f"--where={line}" for line in _lines(form, "where")]
    answered = ["--answered"] if form.get("answered") else []
    output = picture = ""
    if kind == "model":
        formula = f"{form.get('response', '')} ~ {form.get('terms', '')}".strip()
        merged = [f"--collapse={line}" for line in _lines(form, "collapse")]
        given = ["estimate", "model", release, formula, *merged, *where, *answered]
    elif kind == "synthetic":
        output = form.get("output", "")
        if not output:
            raise InputError("name the folder to make")
        output = new_path(studio.folder, output)
        made = {"rows": form.get("rows", "synthetic"), "copies": form.get("copies", "20")}
        given = ["synthesize", release, f"--output={output}", *where]
        given += [f"--{name}={value}" for name, value in made.items()]
    elif kind == "combine":
        if not form.get("results"):
            raise InputError("name the file with the results of every copy")
        given = ["combine", read_path(studio.folder, form["results"])]
    else:
        of = [name for i in "123" if (name := form.get(f"table.{i}", ""))]
        if not of:
            raise InputError("name one to three attributes")
        given = ["estimate", release, f"--of={','.join(map(_quoted, of))}"]
        given += [*where, *answered]
        if len(of) < 3:  # of three, there is no picture
            studio.cache.mkdir(parents=True, exist_ok=True)
            picture = str(studio.cache / "answer.svg")
    studio.begin("estimate", Job([*given, "--json"], studio.folder, output, picture))


def _lines(form: Mapping[str, str], name: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line.strip() for line in form.get(name, "").splitlines() if line.strip()]


def _quoted(name: str) -> str:
    """Return a name for a list of names, quoted as in CSV where needed."""
    plain = name == name.strip() and not set(name) & set(',"')
    return name if plain else '"' + name.replace('"', '""') + '"'


async def stop(post: Post) -> None:
    """Cancel a job and wait for its end."""
    name = post.form.get("which", "")
    if job := post.studio.jobs.get(name):
        job.stop()
        await post.studio.made(name, post.gone)


STEPS: dict[str, Step] = {
    "update": update,
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
    "roles": roles,
    "look": look,
    "example": example,
    "names": names,
    "release": release,
    "study": study,
    "make_release": partial(make, "release"),
    "make_study": partial(make, "study"),
    "rehearse": rehearse,
    "estimate": estimate,
    "stop": stop,
    **{name: partial(change, name) for name in declaring.CHANGES},
}
"""The steps, by the name of their button."""

UNTIED = frozenset({"speak", "rehearse", "estimate", "stop", "look"})
"""Steps independent of the draft."""

REPEATED = frozenset({"undo", "redo", "release", "study", "make_release", "make_study"})
"""Steps that are refused where the draft is another than the page showed."""
