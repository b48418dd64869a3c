"""Documents become Markdown with a heading for each page, slide, sheet or chapter; hostile ones are refused."""

import io
import time

import pytest
from tests.formats import document_files as files

from quaid.formats import documents, html_text, markdown
from quaid.formats.documents import UnreadableDocument


def text_of(kind: str, data: bytes, name: str = "file") -> str:
    (document,) = documents.read(kind, name, io.BytesIO(data))
    return documents.render(document)


def test_each_page_of_a_pdf_has_a_heading_with_its_number() -> None:
    text = text_of("pdf", files.pdf(["Anode voltage.", "Cathode voltage."], "Cell design"))
    assert "title: Cell design\n" in text
    assert "## Page 1\n\nAnode voltage." in text
    assert "## Page 2\n\nCathode voltage." in text


def test_a_pdf_without_text_and_a_damaged_one_are_refused() -> None:
    with pytest.raises(UnreadableDocument, match="pictures"):
        text_of("pdf", files.pdf([""]))
    with pytest.raises(UnreadableDocument, match="damaged"):
        text_of("pdf", b"%PDF-1.4\nnothing")


def test_docx_keeps_headings_of_any_language_tables_and_pages() -> None:
    page_break = "<w:lastRenderedPageBreak/>"
    row = f"<w:tr><w:tc>{files.paragraph('Anode')}</w:tc><w:tc>{files.paragraph('1.2 V')}</w:tc></w:tr>"
    body = (
        files.paragraph("Scope", "berschrift1")
        + files.paragraph("First text.")
        + files.paragraph("Limits", "berschrift1", page_break)
        + files.paragraph("# not a heading")
        + files.paragraph("Detail", "H2")
        + f"<w:tbl>{row}</w:tbl>"
    )
    text = text_of("docx", files.docx(body))
    assert "## Scope" in text
    assert "## Limits (page 2)\n\n\\# not a heading\n\n### Detail\n\n| Anode | 1.2 V |" in text


def test_docx_without_headings_has_a_heading_for_each_page() -> None:
    body = (
        files.paragraph("One.")
        + files.paragraph("Two.", "", "<w:lastRenderedPageBreak/>")
        + files.paragraph("Rest.")
    )
    text = text_of("docx", files.docx(body))
    assert [line for line in text.split("\n") if line.startswith("##")] == ["## Page 1", "## Page 2"]
    assert text.index("## Page 2") < text.index("Two.")


def test_docx_counts_a_manual_page_break_once() -> None:
    manual, stored = '<w:br w:type="page"/>', "<w:lastRenderedPageBreak/>"
    body = (
        files.paragraph("One.")
        + files.paragraph("", "", manual)
        + files.paragraph("Two.", "", stored)
        + files.paragraph("Three.", "", stored)
        + files.paragraph("Four.", "", manual)
        + files.paragraph("Five.", "", stored)
    )
    text = text_of("docx", files.docx(body))
    pages = [line for line in text.split("\n") if line.startswith("##")]
    assert pages == [f"## Page {number}" for number in range(1, 6)]
    assert text.endswith("## Page 5\n\nFive.\n")


def test_slides_keep_their_order_and_titles() -> None:
    text = text_of("pptx", files.pptx([("Plan", "Build it."), ("Cost", "Ten.")]))
    assert "## Slide 1: Plan\n\nBuild it.\n\n## Slide 2: Cost\n\nTen." in text
    assert "99" not in text


def test_sheets_become_tables_with_dates_and_row_numbers() -> None:
    rows = [["item", "day", "price"], ["bolt", "46137", "0.30000000000000004"]]
    assert "## Sheet Prices\n\n| item | day | price |\n|---|---|---|\n| bolt | 2026-04-25 | 0.3 |" in text_of(
        "xlsx", files.xlsx(rows)
    )
    long = text_of("xlsx", files.xlsx([["item"], *([f"bolt {n}"] for n in range(150))]))
    assert "## Sheet Prices, rows 101–151\n\n| item |" in long


def test_html_is_read_without_scripts_and_navigation() -> None:
    page = (
        "<html><head><title>Tide</title><script>alert(1)</script></head><body><nav>Home</nav><main><h1>High</h1>"
        "<p>Twice a day.<ul><li>ebb<li>flood</ul><pre>a  b</pre></main><footer>Imprint</footer></body></html>"
    )
    text = text_of("html", page.encode())
    assert "## High\n\nTwice a day.\n\n- ebb\n\n- flood\n\n```\na  b\n```" in text
    assert not any(word in text for word in ("alert", "Home", "Imprint"))


def test_html_keeps_quotations_numbers_and_breaks_and_no_title_of_a_picture() -> None:
    page = (
        "<title>Tide</title><body><svg><title>Icon</title></svg><blockquote><p>It<br>turns.</p></blockquote>"
        "<ol><li>ebb<li>flood</ol><p># not\na heading</p><table><tr><td>a<td><td>b</table>"
    )
    text = text_of("html", page.encode())
    assert "title: Tide\n" in text
    assert "> It\n> turns.\n\n1. ebb\n\n2. flood\n\n\\# not a heading\n\n| a | b |" in text


def test_html_notes_keep_links_emphasis_lines_and_empty_cells() -> None:
    note = (
        "<meta name=Created content=2022><div>One <i>two</i></div><div>three</div><div><br></div><div>#four</div>"
        "<ol><li>a<li>b</ol><img alt=x src='data:,'><table><tr><td><td>b</table><pre>c\n d</pre>"
    )
    text, reader = html_text.read_note(note)
    assert text == (
        "One *two*\nthree\n\n#four\n\n1. a\n2. b\n\n![x]()\n\n|  | b |\n| --- | --- |\n\n```\nc\n d\n```"
    )
    assert reader.meta == {"created": "2022"}


@pytest.mark.parametrize("mark", ["<!--", "<!-- >", "<![x >", "<!", "<?", "</", "<a ", "<a b='", "<"])
def test_marks_without_an_end_cost_no_more_than_their_length(mark: str) -> None:
    start = time.process_time()
    text, _ = html_text.main_text(f"<p>First</p>{mark * 100_000}")
    assert "First" in text
    assert time.process_time() - start < 3  # what grows with the square of the length needs minutes
    assert html_text.read_note("<p>a<!-- b --> c<!--> d")[0] == "a c d"


def test_text_of_a_drawing_is_read() -> None:
    svg = (
        "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><title>Harbour</title><style>p {}</style>"
        "<g><title>Layer</title><text>Pier <tspan>nine</tspan></text></g><script>alert(1)</script></svg>"
    )
    text = text_of("svg", svg.encode())
    assert text.startswith("---\ntitle: Harbour\n")
    assert "Harbour\nLayer\nPier nine" in text
    assert "alert" not in text
    with pytest.raises(UnreadableDocument, match="entities"):
        text_of("svg", b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg><text>&x;</text></svg>')


def test_chapters_of_an_epub_follow_its_spine() -> None:
    text = text_of("epub", files.epub([("Ebb", "Water falls."), ("Flood", "Water rises.")]))
    assert "title: Tides\nauthor: Ann Moe\n" in text
    assert "## Chapter 1: Ebb\n\nWater falls.\n\n## Chapter 2: Flood\n\nWater rises." in text


def test_names_in_an_archive_lead_nowhere_else() -> None:
    item = '<item id="x" href="../../../../etc/passwd" media-type="text/html"/>'
    assert "root:" not in text_of(
        "epub", files.epub([("Ebb", "Falls.")], items=item, spine='<itemref idref="x"/>')
    )


def test_encoded_headers_and_html_mails_are_read() -> None:
    data = files.mail("=?utf-8?q?Bl=C3=A5_b=C3=A5t?=", "<p>The <b>boat</b> sails.</p>").replace(
        b"\nTo:", b"\nContent-Type: text/html; charset=utf-8\nTo:"
    )
    text = text_of("eml", data)
    assert "title: Blå båt\n" in text
    assert "- From: Alice Berg <alice@example.org>\n" in text
    assert "The boat sails." in text


def test_a_mailbox_yields_each_mail_and_skips_one_that_is_none() -> None:
    data = files.mbox([files.mail("One", ">From here on"), b"garbage\n", files.mail("Two", "Text.", 2)])
    mails = list(documents.read_mailbox(io.BytesIO(data)))
    assert [mail.title for mail in mails] == ["One", "", "Two"]
    assert "no From" in mails[1].notes[0]
    assert "\nFrom here on" in documents.render(mails[0])


def test_events_have_headings_with_their_day() -> None:
    calendar = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Dentist\\, again\r\nDTSTART;TZID=Europe/Oslo:20260425T101500\r\n"
        "LOCATION:Long \r\n street\r\nBEGIN:VALARM\r\nDESCRIPTION:beep\r\n"
        "END:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    text = text_of("ics", calendar.encode())
    assert (
        "## Dentist, again (2026-04-25)\n\n- From: 2026-04-25 10:15 (Europe/Oslo)\n- Where: Long street"
        in text
    )
    assert "beep" not in text


def test_code_is_fenced_with_line_numbers_and_text_with_pages() -> None:
    code = text_of("code", b"x = '```'\n" * 120, "main.py")
    assert "## Lines 1–100\n\n````py\nx = '```'\n" in code
    assert "## Lines 101–120\n" in code
    assert "## Page 2\n\nsecond" in text_of("text", b"first\n\fsecond\n")


def test_text_of_a_document_sets_no_front_matter_and_no_timeline() -> None:
    hostile = b"---\nslug: people/alice\n---\n\n---\n\n- **2026-04-25** | x -- y\n"
    parsed = markdown.parse(text_of("text", hostile))
    assert "slug" not in parsed.frontmatter
    assert parsed.timeline == ""


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("docx", files.docx("&x;", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "entities"),
        ("docx", files.zipped({"word/document.xml": b" " * 101 * 1024 * 1024}), "unpacks to more"),
        ("docx", files.docx("<w:p>" * 2_000), "nests too deeply"),
        ("docx", files.xlsx([["a"]]), "not a DOCX"),
        ("xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted"),
        ("docx", files.docx(files.paragraph("a"))[:-30], "damaged"),
        ("epub", files.zipped({"a": b""}), "not an EPUB"),
        ("ics", b"hello", "not an iCalendar"),
        ("eml", b"hello", "not an e-mail"),
        ("code", b"\0\1\2", "not text"),
    ],
)
def test_unreadable_documents_say_why(kind: str, data: bytes, problem: str) -> None:
    with pytest.raises(UnreadableDocument, match=problem):
        text_of(kind, data)


def test_text_over_the_limit_is_cut_and_reported() -> None:
    (document,) = documents.read("text", "a.txt", io.BytesIO(b"word " * 1_000_000))
    assert len(documents.render(document)) < 3_600_000
    assert "only the first 3,500,000 bytes" in document.notes[0]
