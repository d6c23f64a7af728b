"""Tables for notebooks hold every text as text."""

from xml.etree import ElementTree

import deniable
from deniable.notebook import html_table


def test_texts_cannot_break_out_of_a_table() -> None:
    made = ElementTree.fromstring(html_table("a < b", ["<i>"], [["x & y"], ['"z"']]))
    assert "".join(made.itertext()) == 'a < b<i>x & y"z"'


def test_schemas_and_designs_show_themselves() -> None:
    attribute = deniable.Attribute("smokes", ("no", "yes"))
    schema = deniable.Schema((attribute,), "A survey", keep=("region",))
    shown = schema._repr_html_()
    ElementTree.fromstring(shown)
    assert "A survey" in shown
    assert "<td>region</td><td>as it is</td>" in shown
    made = deniable.design(schema, epsilon=2, method="kronecker")._repr_html_()
    assert "ε of the whole record 2 nats" in made.replace("1.99999", "2")
