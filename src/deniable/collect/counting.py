"""Questions asked of a study while it runs, or after: counts straight from its store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deniable.collect.folder import StudyFolder
from deniable.collect.releasing import stored_codes
from deniable.errors import InputError
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Tabulator
from deniable.mechanism.channel import Channel
from deniable.mechanism.strata import Strata


@dataclass(frozen=True)
class Collected(Release):
    """What a study has collected so far, as a release that questions are asked of.

    Args:
        folder: the study's.
    """

    folder: StudyFolder | None = None

    def count(
        self,
        names: Sequence[str],
        *,
        by: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
        weights: str | None = None,
    ) -> list[Counts]:
        """Return all records counted.

        Raises:
            InputError: if there are none, or rows are to be grouped, selected or weighed.
        """
        if by or where or weights:
            raise InputError(
                "a study's store has no rows to group, select or weigh; collect export makes a "
                "release that does"
            )
        assert self.folder is not None
        study, store = self.folder.study, self.folder.open_store()
        mechanism = study.design.mechanism
        places = {variable.position for variable in mechanism.schema.variables(names)}
        channel = Channel(mechanism, tuple(names))
        tabulator = Tabulator(channel.n_outputs)
        try:
            for codes in stored_codes(study, store):
                tabulator.add(channel.released_codes({i: codes[i] for i in places}))
        finally:
            store.dispose()
        return [Counts.of(mechanism, tabulator.tabulation())]


def open_collected(path: Path) -> Collected:
    """Return what questions about a study are asked of.

    Raises:
        InputError: if the folder is not one of a study, or the study does not hold together.
    """
    folder = StudyFolder(path)
    return Collected(Strata.one(folder.study.design.mechanism), folder=folder)
