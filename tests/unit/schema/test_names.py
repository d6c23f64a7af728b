"""Lists of column names as people type them."""

from deniable.schema.names import set_mark, split_names


def test_names_are_split_at_commas():
    assert split_names("a, b,c") == ["a", "b", "c"]
    assert split_names("a,,") == ["a"]
    assert split_names("") == []


def test_a_name_in_quotes_may_contain_commas_quotes_and_blanks_at_its_ends():
    assert split_names('"a,b", c ," lead ",e "q" f') == ["a,b", "c", " lead ", 'e "q" f']
    assert split_names('"say ""no"", twice"') == ['say "no", twice']


def test_the_text_of_an_answer_that_names_a_set_is_that_of_no_category():
    assert set_mark(["single", "married"]) == ":"
    assert set_mark(["single", "2:single"]) == "::"
