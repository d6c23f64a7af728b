"""Answers as one table say of how many rows, of what truth and at which level they are."""

from xml.etree import ElementTree

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.columns import Answers, columns_of, plot_of, shown
from deniable.estimate.covariance import Covariance
from deniable.estimate.independence import independence
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from deniable.tables.selection import Selection

AGE = Attribute("age", bins=(0, 10, 20, 40))
SEX = Attribute("sex", ("f", "m"))
MECHANISM = Mechanism.of(ProductLaw.from_levels((3, 2), (3.0, 3.0)), Schema((AGE, SEX)))
IN_TOWNS = Mechanism(Schema((AGE, SEX), keep=("town",)), MECHANISM.blocks)
COUNTS = Counts.of(MECHANISM, np.array([[900, 300], [500, 700], [300, 300]]))


def test_a_long_table_has_a_row_per_cell_and_a_wide_one_a_column_per_category() -> None:
    (found,) = Shares(("age", "sex")).answer(COUNTS)
    long = columns_of([found], 0.9).table.to_pydict()
    assert long["age"] == [name for name in AGE.categories for _ in "fm"]
    assert long["estimate"] == found.values.ravel().tolist()
    assert long["count"] == pytest.approx((3000 * found.values).ravel().tolist())
    assert set(long["n"]) == {3000}
    assert set(long["target"]) == {"table"}
    assert set(long["level"]) == {0.9}
    wide = columns_of([found], 0.9, wide=True).table.to_pydict()
    assert wide["age"] == list(AGE.categories)
    assert wide["sex=m"] == found.values[:, 1].tolist()
    with pytest.raises(InputError, match="two attributes or more"):
        columns_of(Mean(("age",), by=("sex",)).answer(COUNTS), 0.95, wide=True)


def test_means_and_quantiles_are_rows_too() -> None:
    means = columns_of(Mean(("age",), by=("sex",)).answer(COUNTS), 0.95).table.to_pydict()
    assert means["sex"] == ["f", "m"]
    assert means["scores"] == ["edges", "edges"]
    assert means["estimate"] == [None, None]
    assert means["least"][0] > means["low"][0]
    quantiles = columns_of(Quantile(("age",), by=("sex",)).answer(COUNTS), 0.95).table.to_pydict()
    assert quantiles["lower_edge"][0] in (0, 10)
    assert quantiles["probability"] == [0.5, 0.5]


def test_a_notebook_shows_the_caption_and_the_table() -> None:
    (found,) = Shares(("age", "sex")).answer(COUNTS)
    page = ElementTree.fromstring(found._repr_html_())
    text = "".join(page.itertext())
    assert "Shares of age, sex: 3,000 rows, of these rows" in text
    assert len(page.findall("./tbody/tr")) == 6
    assert "Mean of age" in Answers(Mean(("age",), by=("sex",)).answer(COUNTS))._repr_html_()


def test_plots_are_of_one_attribute_or_two() -> None:
    assert len(plot_of([Shares(("age", "sex")).answer(COUNTS)[0]], 0.95).axes) == 2  # and its scale
    means = plot_of(Mean(("age",), by=("sex",), scores=(5, 15, 30)).answer(COUNTS), 0.95)
    assert [tick.get_text() for tick in means.axes[0].get_yticklabels()] == ["f", "m"]


def test_counts_and_values_are_written_as_people_read_them() -> None:
    assert [shown(None), shown(True), shown(0.123456), shown("x")] == ["–", "yes", "0.1235", "x"]


def test_answers_are_dataframes_plots_and_pages_one_by_one_and_together() -> None:
    means = Answers(Mean(("age",), by=("sex",), scores="middle", level=0.9).answer(COUNTS))
    (covariance,) = Covariance(("age", "sex"), scores=("middle", (0, 1))).answer(COUNTS)
    for answer in (means, means[0], covariance):
        rows = len(means) if answer is means else 1
        pandas, polars = answer.to_pandas(), answer.to_polars()
        assert (len(pandas), len(polars)) == (rows, rows)
        assert pandas["standard_error"].tolist() == polars["standard_error"].to_list()
        assert set(pandas["n"]) == {3000}
        assert answer.plot().axes
        assert "3,000 rows" in answer._repr_html_()
    assert means.to_pandas()["estimate"].tolist() == [mean.estimate for mean in means]
    assert set(means.to_pandas()["level"]) == {0.9}
    low, high = covariance.confidence_interval(0.5)
    assert covariance.to_pandas(0.5)[["low", "high"]].to_numpy().tolist() == [[low, high]]
    assert len(Answers([]).to_pandas()) == 0


def test_an_interval_is_never_called_one_of_another_level() -> None:
    mean = Mean(("age",), by=("sex",), scores="middle", level=0.9).answer(COUNTS)[0]
    assert "90 % intervals" in mean.caption()
    assert mean.table(0.9) == mean.table()
    for ask in (mean.table, mean.caption, mean.to_pandas):
        with pytest.raises(InputError, match=r"made for the level 0\.9; estimate again with level"):
            ask(0.95)


def test_no_answers_are_nothing_to_draw_and_an_empty_table() -> None:
    with pytest.raises(InputError, match="no estimates to plot"):
        Answers([]).plot()
    assert len(Answers([]).to_pandas()) == 0
    assert "<table" in Answers([])._repr_html_()


def test_a_test_is_no_number_to_draw() -> None:
    with pytest.raises(InputError, match="no estimates to plot"):
        independence(COUNTS, ("age", "sex")).plot()


def test_groups_of_different_size_have_one_caption_and_one_table_of_rows() -> None:
    # Failed before: a caption per group, each with all rows left out, and no `.table()`, which a
    # long table names.
    asked = Mean(("age",), by=("sex",), scores="middle")
    few = Counts.of(MECHANISM, np.array([[90, 30], [50, 70], [30, 30]]))
    both = [asked.answer(counts)[0] for counts in (COUNTS, few)]
    found = Answers(both, Selection(left_out=(("weight", 80),)))
    text = str(found)
    assert text.count("Left out: 80 rows") == text.count("Mean of age") == 1
    assert "300 to 3,000 rows per group" in text
    assert [row["n"] for row in found.table()] == [3000, 300]
    assert [row["estimate"] for row in found.table()] == [one.estimate for one in both]
    with pytest.raises(InputError, match="made for the level"):
        found.table(0.9)


def test_the_columns_of_a_table_of_cells_are_its_rows() -> None:
    counts = Counts.of(IN_TOWNS, COUNTS.parts[0][1], (("town", "a"),))
    other = Counts.of(IN_TOWNS, np.array([[90, 0], [0, 70], [30, 30]]), (("town", "b"),))
    found = Answers(Shares(("age", "sex")).answer(each)[0] for each in (counts, other))
    rows = columns_of(found, 0.9).rows()
    assert rows == [row | {"target": "table", "level": 0.9} for row in found.table(0.9)]
    low, high = found[1].confidence_interval(0.9)
    for row, (index, (age, sex)) in zip(rows[6:], found[1].cells(), strict=True):
        assert (row["town"], row["age"], row["sex"]) == ("b", age, sex)
        assert (row["estimate"], row["low"]) == (found[1].values[index], low[index])
        assert (row["high"], row["uncertain"]) == (high[index], found[1].uncertain[index])
    frame = found.to_pandas(0.9)
    assert frame["town"].tolist() == ["a"] * 6 + ["b"] * 6
    assert frame.to_dict("records") == rows
    assert found.to_polars(0.9).to_dicts() == rows


def test_many_groups_have_more_categories_than_one_of_them() -> None:
    groups = [Counts.of(IN_TOWNS, COUNTS.parts[0][1], (("town", str(i)),)) for i in range(200)]
    found = Answers(Shares(("age", "sex")).answer(counts)[0] for counts in groups)
    assert found.to_pandas()["town"].tolist() == [str(i) for i in range(200) for _ in range(6)]


def test_what_cannot_be_estimated_is_none_in_rows_and_missing_in_frames() -> None:
    (found,) = Shares(("age",), by=("sex",)).answer(
        Counts.of(MECHANISM, np.array([[900, 0], [500, 0], [300, 0]]))
    )
    undefined = [row["estimate"] is None for row in found.table()]
    assert undefined == np.isnan(found.values).ravel().tolist() == [False, True] * 3
    assert found.to_pandas()["estimate"].isna().tolist() == undefined
