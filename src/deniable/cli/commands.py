"""Commands of the program: group, function in its module, and help.

The help has them from here, so that no command's module is imported for it.
"""

from deniable.cli import groups

COMMANDS = {
    groups.START: {
        "collecting:collect_app": """
        Collect answers that every respondent's own browser randomizes before it sends them.""",
        "queries:estimate_app": """
        Estimate shares, means, tests or models from a release, with error bars.

        Example: deniable estimate release --of race,hhi""",
        "example:example": """
        Copy the shipped example: a table, its schema and a notebook.

        Example: deniable example practice""",
        "releasing:share": """
        Randomize a table and write a folder to publish (docs/howto/steward.md).

        Example: deniable share insurance.csv --schema insurance.toml \\
        --epsilon 4 --output release""",
        "studio:studio": """
        Open a local web page that designs mechanisms and makes releases (docs/studio.md).

        It accepts connections from this machine with the printed address only, and stops an hour
        after the page was closed.

        Example: deniable studio insurance.toml""",
    },
    groups.BEFORE: {
        "designing:design": """
        Find a mechanism. Needs no data.

        Example: deniable design --categories 5,5,3 --epsilon 4 --output mechanism.json""",
        "designing:plan": """
        Compute rows, error or ε from the other two.

        For all attributes, or for --tables. The smallest ε is found to three digits.
        With --trend: of a study of genotypes people, ε or odds ratio from the other two.

        Example: deniable plan --categories 5,5,3 --rows 10000 --within 3pt""",
        "designing:schema_app": "Work with schema files.",
        "frontier:frontier_app": """
        Compare privacy and accuracy for one attribute with a proven bound.

        Example: deniable frontier --distribution normal,10 \\
        --delta 0.75 --output frontier""",
    },
    groups.RELEASE: {
        "pram:pram": """
        Randomize a whole collected table (post-randomization) and write a folder to publish.

        Example: deniable pram insurance.csv --schema insurance.toml \\
        --attenuation 0.8 --invariant --output pram""",
        "releasing:finish_": """
        Complete a release in parts, once all its parts are drawn.

        Example: deniable finish .release.job""",
        "releasing:randomize": """
        Randomize a table, or one row, with a mechanism. Streams.

        Example: deniable randomize insurance.csv --mechanism release --output out.csv""",
        "releasing:work": """
        Work on a release in parts, in batch systems; repeated and concurrent runs are safe.

        Example: deniable work .release.job --part 1/2""",
    },
    groups.READING: {
        "synthesizing:combine": """
        Combine the results of an analysis of every synthetic copy.

        Example: deniable combine synthetic/results.csv""",
        "synthesizing:synthesize": """
        Draw tables that any tool can read from a model of a release.

        No row belongs to a person. Analyse every copy and combine the results with
        deniable combine: a single copy gives intervals that are far too narrow.

        Example: deniable synthesize release --copies 20 --output synthetic""",
    },
    groups.CHECKING: {
        "auditing:audit": """
        Draw rows and test the claims of a mechanism. No refutation is not a proof.

        Prints lower limits of ε of the record and of every attribute, and attenuations of
        attributes and pairs, at the inputs and outputs where the law is nearest to its
        limits. Exits with status 1 if a claim is refuted.

        Example: deniable audit mechanism.json --draws 100000""",
        "designing:inspect": """
        Recompute every number from the law, and compare it with the file.

        Of a release's folder also check that the mechanism can have released its table, and, with
        --signed-by, its signature. Of a study's folder check its records.

        Example: deniable inspect mechanism.json --subset a1,a2""",
        "ledger:ledger_app": "Sum of ε over all releases of a population, and its budget.",
        "reproduce:reproduce": """
        Repeat tables and figures of the papers, with a verdict on every claim.

        Example: deniable reproduce lambda --quick --output lambda-study""",
    },
}
