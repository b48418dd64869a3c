"""The category of sentences in six languages; the measured sets are bench/data/remember*.txt."""

import pytest
from bench import remember_weights as measured

from quaid.notebook import classifier, router

LANGUAGES = ("en", "fr", "de", "es", "zh", "ja")


@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_held_out_sentences_get_their_category(language: str) -> None:
    rows = [row for row in measured.development(held_out=True) if row.language == language]
    assert len(rows) >= (125 if language == "en" else 30)
    right = sum(measured.is_right(row, router.classify(row.text).category) for row in rows)
    assert right / len(rows) >= (0.93 if language == "en" else 0.88)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("remove milk", "removal"),
        ("delete Anna's number", "removal"),
        ("forget what I said about the car", "removal"),
        ("no, the meeting is at 4, not 3", "correction"),
        ("actually Ines lives in Galway now", "correction"),
        ("don't ever use emojis", "order"),
        ("get the eggs off the shopping list", "removal"),
        ("Oskar lives in Malmö with two cats", "fact"),
        ("Oskar's number is 555-0101", "contact"),
        ("my plumber is Mr Vance", "contact"),
        ("Greta is allergic to walnuts", "fact"),
        ("Greta loves walnuts", "preference"),
        ("Meine Tante lebt in Bremen", "fact"),
        ("Nora est allergique aux noix", "fact"),
        ("Where did I park", "question"),
        ("Quel est le code du garage ?", "question"),
        ("Lösch die Nummer von Anna", "removal"),
        ("No uses nunca emojis", "order"),
        ("牙医的电话是多少", "question"),
        ("牛乳を買う", "shopping"),
        ("Add Dune to my reading list", "list"),
        ("Add milk to the shopping list", "shopping"),
        ("Ajoute du lait à la liste de courses", "shopping"),
        ("把《活着》加到书单", "list"),
    ],
)
def test_category_of_a_sentence(text: str, category: str) -> None:
    assert router.classify(text).category == category


def test_unclear_sentence_is_a_fact_with_the_categories_that_were_near() -> None:
    unclear = router.classify("zxcv qwer")
    assert unclear.category == "fact"
    assert set(unclear.near) <= set(classifier.CATEGORIES)


@pytest.mark.parametrize(
    "text",
    ["", " ", "?", "…", "x" * 10_000, "a, " * 5_000, "(" * 2_000, "Привет, как дела", "مرحبا", "\x00", "'s"],
)
def test_any_text_has_a_category(text: str) -> None:
    assert router.classify(text).category in classifier.CATEGORIES


def test_embedding_is_asked_for_only_in_doubt() -> None:
    asked: list[str] = []

    def embed(text: str) -> bytes:
        asked.append(text)
        return bytes(4 * 384)

    router.classify("Call the bank tomorrow", embed)
    router.classify("Mañana hay que llamar al banco", embed)
    assert asked == []
    texts = [row.text for row in measured.development(held_out=True) if row.language == "en"]
    for text in texts:
        router.classify(text, embed)
    assert 0 < len(asked) < 26


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Pick up the kids", "en"),
        ("Il faut rappeler le garagiste", "fr"),
        ("Zahnarzttermin ausmachen", "de"),
        ("Tengo que llamar al fontanero", "es"),
        ("买牛奶", "zh"),
        ("牛乳を買う", "ja"),
    ],
)
def test_language_is_guessed_from_words_and_script(text: str, language: str) -> None:
    assert classifier.guess_language(text) == language


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("acheter du pain et du beurre", ["Pain", "Beurre"]),
        ("lait, oeufs, farine", ["Lait", "Oeufs", "Farine"]),
        ("Kauf Milch und Eier", ["Milch", "Eier"]),
        ("Kaffee ist alle", ["Kaffee"]),
        ("Nos hemos quedado sin café", ["Café"]),
        ("comprar leche y huevos", ["Leche", "Huevos"]),
        ("买牛奶和鸡蛋", ["牛奶", "鸡蛋"]),
        ("卫生纸快用完了", ["卫生纸"]),
        ("牛乳と卵を買う", ["牛乳", "卵"]),
        ("洗剤が切れた", ["洗剤"]),
    ],
)
def test_shopping_items_in_other_languages(text: str, items: list[str]) -> None:
    assert router.lines_to_write(text, router.NOTE_KINDS["shopping"]) == items


@pytest.mark.parametrize(
    ("text", "name", "items"),
    [
        ("Ajoute L'Étranger à ma liste de lecture", "lecture", "L'Étranger"),
        ("Liste de cadeaux : un vélo pour Léa", "cadeaux", "un vélo pour Léa"),
        ("Setz Dune auf meine Leseliste", "Leseliste", "Dune"),
        ("Packliste: Badehose, Adapter", "Packliste", "Badehose, Adapter"),
        ("pon Lisboa en la lista de viajes", "viajes", "Lisboa"),
        ("把《三体》加到我的阅读清单", "阅读清单", "《三体》"),
        ("电影清单：寄生虫", "电影清单", "寄生虫"),
        ("旅行リストにリスボンを入れて", "旅行リスト", "リスボン"),
        ("リスボンを旅行リストに追加して", "旅行リスト", "リスボン"),
    ],
)
def test_list_that_a_sentence_in_another_language_names(text: str, name: str, items: str) -> None:
    assert router.find_named_list(text) == (name, items)


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("Mein Zahnarzt heißt Dr. Wenzel", "Dr. Wenzel"),
        ("Annas Nummer ist 0171 5544332", "Anna"),
        ("Le numéro de Camille est le 06 12 45 78 90", "Camille"),
        ("El teléfono de Lucía es 612 334 455", "Lucía"),
        ("李娜的电话是13812345678", "李娜"),
        ("佐藤さんの電話番号は090-1234-5678です", "佐藤"),
    ],
)
def test_person_of_a_contact_in_other_languages(text: str, person: str) -> None:
    assert router.find_person(text) == person


def test_lexicons_have_the_same_classes() -> None:
    lines = classifier._data_lines("routing_words.txt")
    classes: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("["):
            names = classes.setdefault(line.strip("[]"), set())
        else:
            names.add(line.partition(":")[0])
    assert set(classes) == set(LANGUAGES)
    assert all(names <= classes["en"] for names in classes.values())
