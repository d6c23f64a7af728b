"""Options that other tests of the commands do without."""

import pytest

from cli.test_bad_input import refused

SECRET = "0b-secret"


def test_a_draft_is_replaced_only_if_it_is_said(deniable, people):
    draft = ("schema", "init", "people.csv", "--output", "draft.toml")
    assert deniable(*draft).status == 0
    refused(deniable(*draft), "draft.toml", "exists")
    assert deniable(*draft, "--force").status == 0


@pytest.mark.parametrize(
    "command", [["design", "--json"], ["share", "people.csv", "--output", "r", "--json"]]
)
def test_the_heuristic_takes_attributes_in_the_order_that_is_asked_for(deniable, people, command):
    name, *rest = command
    words = [name, *rest, "--schema", "people.toml", "--method", "heuristic"]
    levels = ["--attribute-epsilon", "0.5,2,1"]
    given = deniable(*words, *levels, "--order", "given", "--allow-changed-levels")
    assert given.status == 0, given.err
    again = ["--force"] if name == "share" else []
    descending = deniable(
        *words, *levels, "--order", "descending", "--allow-changed-levels", *again
    )
    assert descending.status == 0, descending.err

    def reached(done):
        plain = done.json
        rows = plain["mechanism"]["attributes"] if name == "share" else plain["attributes"]
        return [one["epsilon"] for one in rows]

    assert reached(given) != reached(descending)
    refused(deniable(*words, *levels, "--order", "ascending", *again), "order")


def test_settings_of_the_search_reach_it(deniable, tmp_path):
    (tmp_path / "p.json").write_text("[0.4, 0.3, 0.2, 0.1]")

    def fronts(output, *settings):
        done = deniable(
            "frontier", "--prior", "p.json", "--privacy", "0.3", "--methods", "search",
            "--generations", "300", "--population", "10", "--archive", "10", "--output", output,
            *settings,
        )  # fmt: skip
        assert done.status == 0, done.err
        return (tmp_path / output / "frontier.json").read_text()

    plain = fronts("plain")
    for setting in ("--stall=1", "--optimal-set=5", "--crossover=0", "--mutation=0.1"):
        option, _, value = setting.partition("=")
        assert fronts(option.strip("-"), option, value) != plain


def test_values_are_shown_by_pram_and_test_only_if_it_is_said(deniable, people):
    table = (people / "people.csv").read_text()
    (people / "odd.csv").write_text(table.replace("AB", SECRET))
    pram = ["pram", "odd.csv", "--schema", "people.toml", "--lambda", "0.5", "--output", "r"]
    hidden, shown = deniable(*pram), deniable(*pram, "--show-values")
    assert SECRET not in hidden.err
    assert SECRET in shown.err
    deniable("design", "--schema", "people.toml", "--epsilon", "6", "--output", "m.json")
    test = ["test", "odd.csv", "--mechanism", "m.json", "--of", "sex,blood"]
    hidden, shown = deniable(*test), deniable(*test, "--show-values")
    assert hidden.status == shown.status == 2
    assert SECRET not in hidden.err
    assert SECRET in shown.err


def test_what_other_caps_cost_is_computed_on_request_only(deniable, people):
    request = ("--schema", "people.toml", "--epsilon", "3")
    plain = deniable("share", "people.csv", *request, "--output", "plain", "--json").json
    assert plain["comparison"]["curve"] is None
    assert "under a cap of 3x" not in deniable("design", *request).out

    designed = deniable("design", *request, "--curve", "--json").json["comparison"]
    assert "under a cap of 3x: " in deniable("design", *request, "--curve").out
    curved = ("share", "people.csv", *request, "--curve", "--output", "curved", "--json")
    recorded = deniable(*curved).json["comparison"]
    assert recorded["curve"] == designed["curve"]
    assert recorded["chosen_cap"] == "2x"
    levels = [point["epsilon"] for point in recorded["curve"]]
    assert levels == sorted(levels, reverse=True)
    pages = [(people / name / "report.html").read_text() for name in ("plain", "curved")]
    assert ["(this release)" in page for page in pages] == [False, True]
    assert deniable("inspect", "curved").status == 0


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (["--of", "sex,age", "--covariance", "--mean"], "not for two at once"),
        (["--of", "sex,age", "--covariance", "--method", "em"], "by method inversion only"),
        (["--of", "age", "--scores", "1,2,3"], "scores are for a mean"),
        (["--of", "age", "--mean", "--quantile", "0.5"], "not for both at once"),
        (["--of", "age", "--mean", "--method", "projected"], "by method inversion only"),
    ],
)
def test_questions_that_contradict_themselves_are_refused(deniable, people, question, problem):
    deniable("design", "--schema", "people.toml", "--epsilon", "6", "--output", "m.json")
    refused(deniable("estimate", "people.csv", "--mechanism", "m.json", *question), problem)
