"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

SchemaPath = Annotated[Path | None, Parameter(help="Schema file (TOML).")]
Epsilon = Annotated[
    float | None, Parameter(help="Total for the whole record, in nats, divided by the method.")
]
AttributeEpsilon = Annotated[
    str | None,
    Parameter(help="Level per attribute, in nats: 1,2,1.5 or name=1,other=2 or @file."),
]
MethodName = Annotated[
    str | None, Parameter(help="lp, kronecker, closed-form or heuristic; chosen if left out.")
]
GivenRestCap = Annotated[
    str | None,
    Parameter(
        help="Cap on ε against someone who knows the rest of the record: 2x, nats, or per "
        "attribute (method lp)."
    ),
]
HeuristicOrder = Annotated[
    str, Parameter(help="Order in which the heuristic takes attributes: given or descending.")
]
AllowChanged = Annotated[
    bool, Parameter(negative=(), help="Accept a law that misses requested levels; they are listed.")
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for scripts.")]
Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Replace an existing output. Releases of the same people add up: an old copy that "
        "someone has still counts.",
    ),
]
INPUT = "A .csv, .csv.gz or .parquet table, or - for CSV on standard input."
DropOthers = Annotated[
    bool,
    Parameter(negative=(), help="Leave out columns that the schema neither declares nor keeps."),
]
ShowValues = Annotated[
    bool, Parameter(negative=(), help="Let error messages show the offending (sensitive) value.")
]
InsecureSeed = Annotated[
    int | None,
    Parameter(help="NOT PRIVATE. Repeatable randomness for tests; the record says so."),
]
