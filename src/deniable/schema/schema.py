"""Schema: the attributes of a table and its unchanged columns."""

import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from deniable._checks import check_fields, first_duplicate, typed
from deniable.errors import InputError, Notice
from deniable.notebook import html_table
from deniable.schema.attribute import MAX_CATEGORIES, Attribute, category_text
from deniable.schema.declarations import Document, attribute_to_plain, with_meant_field
from deniable.schema.file_format import FileFormat


@dataclass(frozen=True)
class Variable:
    """A countable variable: an attribute, or one part of a merged one."""

    attribute: Attribute
    position: int
    part: int | None = None


HEAD = ("responsible", "contact", "date")
"""Entries of a schema's head besides its title, for the report."""


@dataclass(frozen=True)
class Schema:
    """The attributes of a table, in order, and the columns released unchanged.

    Args:
        attributes: the protected attributes; or their categories by name, in a dictionary.
        title: name of the table.
        responsible: person or office in charge of the release; published, as are the next two.
        contact: their address.
        date: date of the release.
        keep: columns that are released unchanged and unprotected. Two records count as neighbours
            only if they agree on them. One that is also declared as an attribute can be used in
            joint tables.
        file: format of the original text file. Releases have one format.
        one_row_per_person: whether every row is another person's, so that the guarantee of a row is
            that of a person.

    Raises:
        InputError: if there is no attribute, or a column is declared twice.

    Examples:
        >>> smokes = Attribute("smokes", ("no", "yes"), missing="?")
        >>> schema = Schema((smokes, Attribute("sex", ("f", "m"))), keep=("region",))
        >>> schema.names, schema.n_categories, schema.position("sex"), schema.positions(["sex"])
        (('smokes', 'sex'), (3, 2), 1, (1,))
        >>> both = schema.merging(["smokes", "sex"])  # randomized as one, estimated by either name
        >>> both.names, both.variable("sex").part, len(both.variables(["smokes", "sex"]))
        (('smokes+sex',), 1, 2)
        >>> Schema.from_plain(schema.to_plain()) == schema
        True
        >>> Schema({"sex": ["f", "m"]}) == Schema((Attribute("sex", ("f", "m")),))
        True
        >>> Schema.anonymous([3, 2]).names
        ('a1', 'a2')
        >>> text = '[[attribute]]\\nname = "sex"\\ncategories = ["f", "m"]'
        >>> _ = Path("sex.toml").write_text(text)
        >>> Schema.from_toml("sex.toml").n_categories
        (2,)
    """

    attributes: tuple[Attribute, ...]
    title: str = ""
    keep: tuple[str, ...] = ()
    file: FileFormat = field(default_factory=FileFormat)
    one_row_per_person: bool = False
    responsible: str = field(default="", kw_only=True)
    contact: str = field(default="", kw_only=True)
    date: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", _declared(self.attributes))
        check_fields(self)
        object.__setattr__(self, "keep", tuple(self.keep))
        merged = [a for a in self.attributes if a.parts]
        named = [*self.names, *(part.name for a in merged for part in a.parts)]
        if (twice := first_duplicate(named)) is not None:
            raise InputError(f"attribute '{twice}' is declared twice")
        if (twice := first_duplicate(self.keep)) is not None:
            raise InputError(f"column '{twice}' is listed twice under keep")
        for attribute in merged:
            if kept := {attribute.name, *(p.name for p in attribute.parts)} & set(self.keep):
                raise InputError(
                    f"'{min(kept)}' is listed under keep, but '{attribute.name}' is merged from "
                    "columns that are randomized together; keep only columns outside it"
                )
        if not self.protected:
            raise InputError("the schema protects no attribute; declare at least one [[attribute]]")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(a.name for a in self.attributes)

    @cached_property
    def n_categories(self) -> tuple[int, ...]:
        """The attributes' numbers of categories, in order."""
        return tuple(a.n_categories for a in self.attributes)

    @cached_property
    def protected(self) -> tuple[int, ...]:
        """Positions of the randomized attributes."""
        kept = set(self.keep)
        return tuple(i for i, a in enumerate(self.attributes) if a.name not in kept)

    def position(self, name: str) -> int:
        """Return an attribute's position.

        Raises:
            InputError: if there is no such attribute.
        """
        try:
            return self._positions[name]
        except KeyError:
            if name in self._variables:
                whole = self.attributes[self._variables[name].position]
                raise InputError(
                    f"'{name}' is a part of '{whole.name}', which is randomized as one; name "
                    f"'{whole.name}' instead"
                ) from None
            if name in self.keep:
                raise InputError(
                    f"'{name}' is released unchanged: its shares are those of the released rows; "
                    "count these, or use the column to form groups"
                ) from None
            known = ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")
            raise InputError(
                f"there is no attribute '{name}' in the schema; it has {known}"
            ) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def positions(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return several attributes' positions, in the order of the names.

        Raises:
            InputError: if one is unknown or named twice.
        """
        names = list(names)
        if (twice := first_duplicate(names)) is not None:
            raise InputError(f"attribute '{twice}' is named twice")
        return tuple(self.position(name) for name in names)

    @cached_property
    def _variables(self) -> dict[str, Variable]:
        variables = {a.name: Variable(a, i) for i, a in enumerate(self.attributes)}
        for i, attribute in enumerate(self.attributes):
            for j, part in enumerate(attribute.parts):
                variables[part.name] = Variable(part, i, j)
        return variables

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the attributes' columns in the table, in order."""
        return tuple(column.name for a in self.attributes for column in a.columns)

    @property
    def kept_undeclared(self) -> tuple[str, ...]:
        """Unchanged columns whose categories no [[attribute]] declares: they occur in tables, not
        in browser studies."""
        return tuple(name for name in self.keep if name not in self.names)

    @cached_property
    def drafted(self) -> tuple[str, ...]:
        """Randomized columns whose categories or edges were read off the data."""
        protected = (self.attributes[i] for i in self.protected)
        return tuple(c.name for a in protected for c in a.columns if a.drafted or c.drafted)

    def variable(self, name: str) -> Variable:
        """Return an attribute, or a part of a merged one, by its name.

        Raises:
            InputError: if there is neither.
        """
        if name not in self._variables:
            self.position(name)
        return self._variables[name]

    def variables(self, names: Iterable[str]) -> tuple[Variable, ...]:
        """Return attributes and parts by their names, in the order of the names.

        Raises:
            InputError: if one is unknown or named twice, or a part with its whole.
        """
        names = list(names)
        if (twice := first_duplicate(names)) is not None:
            raise InputError(f"attribute '{twice}' is named twice")
        variables = tuple(self.variable(name) for name in names)
        whole = {each.position for each in variables if each.part is None}
        for name, each in zip(names, variables, strict=True):
            if each.part is not None and each.position in whole:
                raise InputError(
                    f"'{name}' is a part of '{self.names[each.position]}', which is also named; "
                    "name either the whole or its parts"
                )
        return variables

    def merging(self, names: Sequence[str]) -> "Schema":
        """Return the schema with several attributes merged into one, in the first one's place.

        Raises:
            InputError: if a name is unknown, kept, or given twice, or they cannot be merged.
        """
        places = self.positions(names)
        whole = Attribute.merged([self.attributes[i] for i in places])
        attributes = [
            whole if i == min(places) else attribute
            for i, attribute in enumerate(self.attributes)
            if i == min(places) or i not in places
        ]
        return replace(self, attributes=tuple(attributes))

    @classmethod
    @typed
    def anonymous(cls, n_categories: Sequence[int]) -> "Schema":
        """Return a schema with attributes a1, a2, … whose categories are 0, 1, …, for designs
        before there is a codebook.

        Raises:
            InputError: if a number of categories is below 2.
        """
        if too_many := [n for n in n_categories if n > MAX_CATEGORIES]:
            raise InputError(
                f"an attribute with {too_many[0]} categories exceeds the limit of {MAX_CATEGORIES}"
            )
        return cls(
            tuple(
                Attribute(f"a{i}", tuple(str(c) for c in range(n)))
                for i, n in enumerate(n_categories, start=1)
            )
        )

    @classmethod
    def from_frame(cls, frame: Any) -> "Schema":
        """Draft a schema from a dataframe, to be replaced by the public codebook.

        As ``deniable schema init`` for a file: columns with few distinct values become categories,
        numbers and dates with many become bins. Each attribute is marked ``drafted``: categories
        and edges read off the data are information about the people in the table. A warning states
        this, another names the columns left out, and :func:`deniable.randomize` and
        :func:`deniable.share` refuse the draft unless ``accept_drafted=True``. To replace an
        attribute by the public one, build the schema from :class:`Attribute` or a TOML file.

        Args:
            frame: a pandas, Polars or pyarrow table, or another frame that narwhals supports.

        Returns:
            The draft, with attributes in the order of the columns.

        Raises:
            InputError: if the frame has no rows, cannot be read, or no column can be declared.

        Examples:
            >>> import deniable, pandas, warnings
            >>> frame = pandas.DataFrame({"smokes": ["no", "yes", "no"], "children": [0, 2, 1]})
            >>> with warnings.catch_warnings(record=True) as caught:
            ...     warnings.simplefilter("always")
            ...     schema = deniable.Schema.from_frame(frame)
            >>> schema.names, schema.n_categories, schema.drafted
            (('smokes', 'children'), (2, 3), ('smokes', 'children'))
            >>> print(str(caught[0].message)[:42])
            WARNING: this draft was read off the data.
        """
        # The one import upwards (tests/test_house.py).
        from deniable.tables.frame_draft import draft_frame

        text, notices = draft_frame(frame)
        schema = replace(cls.from_plain(tomllib.loads(text)), title="")
        for sentence in notices:
            warnings.warn(sentence, Notice, stacklevel=2)
        return schema

    @classmethod
    @typed
    def from_toml(cls, path: str | Path) -> "Schema":
        """Read a schema file.

        Raises:
            InputError: if the file cannot be read, is not TOML, or its declarations are invalid.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{path}: the schema cannot be read ({error.strerror or error})"
            ) from None
        except UnicodeDecodeError:
            raise InputError(f"{path}: the schema is not UTF-8 text") from None
        try:
            return cls.from_plain(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (ValueError, RecursionError):  # thousands of digits; deeply nested lists
            raise InputError(f"{path}: a value in it is too long or too deep") from None

    @classmethod
    @typed
    def from_plain(cls, plain: Mapping[str, Any]) -> "Schema":
        """Build a schema from plain values: a TOML document or the schema part of a record.

        Raises:
            InputError: if a field is missing, misspelt, of the wrong type or contradictory.
        """
        if not plain.get("attribute"):
            raise InputError(
                "the schema declares no attribute; write an "
                "[[attribute]] for every column to protect"
            )
        if isinstance(plain["attribute"], Mapping):
            raise InputError(
                "in the schema, [attribute] has single brackets; every column needs an "
                "[[attribute]] of its own, in double ones"
            )
        try:
            # A TOML date becomes text, as in JSON.
            document = msgspec.convert(msgspec.to_builtins(plain), Document)
        except msgspec.ValidationError as error:
            raise InputError(f"in the schema, {with_meant_field(str(error))}") from None
        keep = list(document.keep)
        attributes: list[Attribute] = []
        for declaration in document.attribute:
            # TOML puts a key after an [[attribute]] header into that attribute: a trailing
            # keep = [...] arrives here, with the same meaning.
            keep += declaration.keep
            keep += [name for part in declaration.part for name in part.keep]
            attributes += declaration.attributes()
        made = cls(
            tuple(attributes),
            document.title,
            tuple(keep),
            document.file.file_format(),
            document.one_row_per_person,
        )
        head = {name: getattr(document, name) for name in HEAD}
        return replace(made, **head) if any(head.values()) else made

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as plain values, readable by :meth:`from_plain`."""
        plain: dict[str, Any] = {}
        if self.title:
            plain["title"] = self.title
        plain |= {name: value for name in HEAD if (value := getattr(self, name))}
        if self.keep:
            plain["keep"] = list(self.keep)
        if file := self.file.to_plain():
            plain["file"] = file
        if self.one_row_per_person:
            plain["one_row_per_person"] = True
        plain["attribute"] = [attribute_to_plain(a) for a in self.attributes]
        return plain

    def _repr_html_(self) -> str:
        rows = [
            [
                attribute.name,
                "as it is" if attribute.name in self.keep else "randomized",
                str(attribute.n_categories),
                _listed(attribute.categories),
            ]
            for attribute in self.attributes
        ]
        rows += [[name, "as it is", "", ""] for name in self.keep if name not in self.names]
        return html_table(
            self.title or "Schema", ["column", "released", "categories", "which"], rows
        )


def _declared(attributes: Any) -> tuple[Attribute, ...]:
    """Return the attributes, converted from a dictionary of categories if needed."""
    example = (
        "attributes must be deniable.Attribute objects, or categories by name: {'sex': ['f', 'm']}"
    )
    if isinstance(attributes, Mapping):
        if any(isinstance(of, str) or not isinstance(of, Iterable) for of in attributes.values()):
            raise InputError(f"{example}; the categories of each name are a list")
        return tuple(
            Attribute(name, tuple(map(category_text, of))) for name, of in attributes.items()
        )
    made = tuple(attributes) if isinstance(attributes, Iterable) else (attributes,)
    if any(not isinstance(attribute, Attribute) for attribute in made):
        raise InputError(f"{example}; not {type(attributes).__name__}")
    return made


def kept_undeclared_text(schema: Schema) -> str:
    """Return a sentence on the unchanged columns without categories, which browser studies omit.

    >>> kept_undeclared_text(Schema((Attribute("sex", ("f", "m")),), keep=("town",)))[:41]
    "'town' is listed under keep without categ"
    """
    names = ", ".join(f"'{name}'" for name in schema.kept_undeclared[:8])
    return (
        f"{names} is listed under keep without categories: a study in the browser includes such a "
        "column only if an [[attribute]] of its name declares the categories (docs/collect.md)"
    )


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
