"""Our word pieces against the tokenizers library."""

import os

import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer

from quaid.embedding.onnx import LAST_LATIN, PLAIN_MARKS, Vocabulary, is_plain
from quaid.embedding.registry import built_in_folder

FOLDER = built_in_folder()
LIBRARY = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
LIBRARY.enable_truncation(512)
with open(os.path.join(FOLDER, "vocab.txt"), "rb") as vocab:
    OURS = Vocabulary(vocab.read())

LETTERS = st.characters(max_codepoint=ord(LAST_LATIN)) | st.sampled_from(PLAIN_MARKS + "aeiou  .,'-[]#")


@given(st.text(LETTERS, max_size=60).filter(is_plain))
def test_every_plain_text_is_cut_as_the_library_cuts_it(text: str) -> None:
    assert OURS.ids(text, 512) == LIBRARY.encode(text).ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Who wrote the first program?",
        "Où est Gaël? İstanbul, Straße, naïve café, Ærøskøbing",
        "don't [[people/ada]] `code` $5.00 50% a_b C++ ##ing",
        "electroencephalographically " * 3,
        "a" * 100 + " " + "a" * 101,
        "“Quotes”—and… €5",
        "tab\tand\nline\r\nend",
        "word " * 600,
    ],
)
def test_known_difficult_texts(text: str) -> None:
    assert is_plain(text)
    assert OURS.ids(text, 512) == LIBRARY.encode(text).ids


@pytest.mark.parametrize("text", ["東京", "привет", "a\0b", "x\x85y", "[MASK] it", "zero\u200bwidth", "😀"])
def test_unusual_text_is_tokenized_by_the_library(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("When did Caroline research adoption agencies?", 0.9, 1.0),
        ("Debugging of kubectl in a containerized cluster", 0.2, 0.9),
        ("Wie lange vorher muss man im Fitnessstudio kündigen?", 0.0, 0.45),
        ("Combien de temps papa doit-il marcher avec des béquilles?", 0.0, 0.45),
        ("Кто оплатит половину лесов?", 0.0, 0.0),
        ("순환 펌프 교체 비용은 누가 내나?", 0.0, 0.0),
        ("循环泵的费用由谁承担？", 0.0, 0.0),
        ("A \udc80 I", 1.0, 1.0),
        ("12:30, 2024 …", 1.0, 1.0),
        ("", 1.0, 1.0),
    ],
)
def test_the_vocabulary_knows_english_better_than_other_languages(
    text: str, least: float, most: float
) -> None:
    with open(os.path.join(FOLDER, "vocab.txt"), "rb") as file:
        fresh = Vocabulary(file.read())
    shares = {fresh.familiarity(text) for _ in range(3)}  # the first by search, the others by a set
    assert len(shares) == 1
    assert least <= shares.pop() <= most
