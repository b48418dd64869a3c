"""Lines keep their trust class when other lines of their page change."""

from quaid.model.page import ALL_BY_PERSON, DERIVED, IMPORTED, PERSON, WEB, LineTrust, class_of_source, unpack

OWN = "# Alice\n\nShe lives in Oslo.\nShe has a dog.\n"


def test_new_lines_get_the_class_of_the_write() -> None:
    classes = ALL_BY_PERSON.after_write(OWN, OWN + "She moved to Bergen.\n", DERIVED)
    assert classes.of_line("She lives in Oslo.") == PERSON
    assert classes.of_line("- She moved to Bergen.") == DERIVED
    assert (classes.highest, classes.lowest) == (PERSON, DERIVED)


def test_a_changed_line_is_a_new_one() -> None:
    classes = ALL_BY_PERSON.after_write(OWN, OWN.replace("Oslo", "Bergen"), WEB)
    assert classes.of_text("She lives in Bergen.\nShe has a dog.") == WEB
    assert classes.of_text("She has a dog.") == PERSON


def test_moving_indenting_or_ticking_a_line_keeps_its_class() -> None:
    classes = LineTrust(DERIVED).after_write("- [ ] buy milk\n", "  * [x] buy  milk\n- eggs\n", PERSON)
    assert classes.of_line("- [ ] buy milk") == DERIVED
    assert classes.of_line("eggs") == PERSON


def test_a_page_that_is_replaced_has_the_class_of_its_new_text() -> None:
    assert LineTrust(IMPORTED).after_write(OWN, "All new.\n", PERSON) == ALL_BY_PERSON


def test_a_removed_line_is_noticed_only_if_it_is_of_a_higher_class() -> None:
    shorter = OWN.replace("She has a dog.\n", "")
    assert ALL_BY_PERSON.removed(OWN, shorter, DERIVED)
    assert not ALL_BY_PERSON.removed(OWN, OWN + "More.\n", DERIVED)
    assert not LineTrust(DERIVED).removed(OWN, shorter, DERIVED)


def test_lines_of_joined_pages_keep_their_classes() -> None:
    joined = ALL_BY_PERSON.joined(OWN, LineTrust(WEB), "She has a dog.\nShe has a cat.\n")
    assert joined.of_line("She has a dog.") == PERSON
    assert joined.of_line("She has a cat.") == WEB


def test_packed_classes_are_unpacked() -> None:
    classes = ALL_BY_PERSON.after_write(OWN, OWN + "One.\nTwo.\n", DERIVED)
    assert unpack(classes.rest, classes.pack()) == classes


def test_an_address_or_a_clip_is_text_from_the_web() -> None:
    assert class_of_source("https://example.com/a") == WEB
    assert class_of_source("articles/a", "clip") == WEB
    assert class_of_source("meeting/17", "meeting") == IMPORTED
