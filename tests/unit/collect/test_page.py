"""The page: one file, the same bytes everywhere, and a policy that allows exactly its code."""

import base64
import hashlib
import re
import zlib
from html import unescape
from pathlib import Path

import pytest

from deniable.collect import page as module
from deniable.collect.page import page_bytes, policy
from deniable.collect.scripts import PAGE, joined, read
from deniable.collect.study import Study, new_study, study_bytes
from deniable.design.design import design
from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, to_json
from marked import weekly_after
from unit.collect.studies import TODAY, example_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return example_study(tmp_path_factory.mktemp("page"))


def test_the_page_is_one_file_that_asks_for_nothing(study: Study) -> None:
    text = page_bytes(study).decode()
    assert page_bytes(study) == text.encode()
    outside = re.sub(r"<script type=\"module\">.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"(?:src|href|action)=\"(?!data:)", outside) == []
    assert study.content.decode() in text
    assert "<form" not in text
    assert "serviceWorker" not in text


def test_the_policy_names_the_code_and_the_style_that_are_there(study: Study) -> None:
    text = page_bytes(study).decode()
    (code,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for content in (code, style):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy()
    assert policy().startswith("default-src 'none'; ")
    assert "connect-src 'self'; " in policy()
    assert "form-action 'none'; frame-ancestors 'none'" in policy()
    assert "unsafe" not in policy()
    # Of a policy in the page itself browsers take no word on frames, and complain.
    assert unescape(text).count(policy(framed=False)) == 1
    assert "frame-ancestors" not in text


def test_a_title_is_never_markup(study: Study) -> None:
    plain = dict(study.plain)
    plain["texts"] = {
        code: {**texts, "title": '</title><script>alert("1")</script>\u202e'}
        for code, texts in plain["texts"].items()
    }
    text = page_bytes(Study(study_bytes(plain))).decode()
    assert text.count("<script") == 2
    assert "alert(&#34;1&#34;)" in text


def test_the_page_is_small(study: Study) -> None:
    code = joined(tuple(module for module in PAGE if module != "texts"))
    assert len((code + read("page.css")).encode()) < 66_000
    assert len(zlib.compress(page_bytes(study), 9)) < 40_000


def test_a_page_that_is_too_large_is_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 50_000)
    with pytest.raises(InputError, match="more than 50,000; design the mechanism with"):
        page_bytes(study)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:respondents read the codes of categories")
@pytest.mark.parametrize("family", weekly_after(1, ["score-table", "pattern-table"]))
def test_the_default_law_of_sixteen_attributes_fits_the_page(tmp_path: Path, family: str) -> None:
    """At a total; and at the same levels, the most that is held as a table of all patterns."""
    sizes = (2, 50, 20, 40) * 4
    schema = Schema(
        tuple(Attribute(f"a{i}", tuple(f"c{j}" for j in range(a))) for i, a in enumerate(sizes))
    )
    mechanism, questions = tmp_path / "mechanism.json", tmp_path / "questionnaire.toml"
    plan = design(schema, epsilon=8)
    if family == "pattern-table":
        plan = design(schema, attribute_epsilon=plan.mechanism.attribute_epsilon)
    assert plan.mechanism.blocks[0].law.family == family
    mechanism.write_bytes(to_json(mechanism_to_plain(plan)))
    head = (
        'title = "t"\npurpose = "p"\ncontact = "c@d.example"\ncloses = 2099-12-31\n'
        'respondents = "open"\nconsent = ["It is up to you."]\n'
    )
    parts = [f'[[question]]\nattribute = "{a.name}"\ntext = "?"\n' for a in schema.attributes]
    questions.write_text(head + "".join(parts))
    assert len(page_bytes(new_study(mechanism, questions, TODAY))) < module.MOST_BYTES
