"""Small documents of each kind, built byte by byte."""

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def zipped(members: dict[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


def relations(*targets: tuple[str, str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="{id_}" Type="{REL}/{kind}" Target="{target}"/>' for id_, kind, target in targets
    )
    return f"<Relationships {RELS}>{rows}</Relationships>"


def pdf(pages: list[str], title: str = "") -> bytes:
    """A PDF file with one line of text on each page."""
    count = len(pages)
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(count))}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        bodies += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    bodies.append(f"<< /Title ({title}) >>")
    data, places = b"%PDF-1.4\n", []
    parts = [data]
    size = len(data)
    for number, body in enumerate(bodies, 1):
        places.append(size)
        parts.append(f"{number} 0 obj\n{body}\nendobj\n".encode())
        size += len(parts[-1])
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    total = len(bodies) + 1
    parts.append(
        f"xref\n0 {total}\n0000000000 65535 f \n{table}trailer\n<< /Size {total} /Root 1 0 R /Info {total - 1} 0 R"
        f" >>\nstartxref\n{size}\n%%EOF\n".encode()
    )
    return b"".join(parts)


def docx(body: str, prolog: str = "") -> bytes:
    styles = (
        f'<w:styles {W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style></w:styles>'
    )
    return zipped(
        {
            "_rels/.rels": relations(("a", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(("s", "styles", "styles.xml")),
            "word/styles.xml": styles,
            "word/document.xml": f"{prolog}<w:document {W}><w:body>{body}</w:body></w:document>",
        }
    )


def paragraph(text: str, style: str = "", before: str = "") -> str:
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r>{before}<w:t>{text}</w:t></w:r></w:p>"


def pptx(slides: list[tuple[str, str]]) -> bytes:
    names = 'xmlns:p="p" xmlns:a="a" xmlns:r="r"'
    members: dict[str, str | bytes] = {
        "_rels/.rels": relations(("a", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>"
        + "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(len(slides)))
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"s{n}", "slide", f"slides/slide{n}.xml") for n in range(len(slides)))
        ),
    }
    for number, (title, text) in enumerate(slides):
        members[f"ppt/slides/slide{number}.xml"] = (
            f'<p:sld {names}><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:t>{title}</a:t></a:p></p:sp>'
            f'<p:sp><a:p><a:t>{text}</a:t></a:p></p:sp><p:sp><p:nvPr><p:ph type="sldNum"/></p:nvPr>'
            "<a:p><a:t>99</a:t></a:p></p:sp></p:sld>"
        )
    return zipped(members)


def xlsx(rows: list[list[str]], sheet: str = "Prices") -> bytes:
    """A workbook with one sheet. Cells that look like numbers are numbers; the style of column B is a date."""
    strings: list[str] = []
    lines = []
    for number, row in enumerate(rows, 1):
        cells = ""
        for column, value in zip("ABCDEFG", row, strict=False):
            if value.replace(".", "").isdigit():
                style = ' s="1"' if column == "B" else ""
                cells += f'<c r="{column}{number}"{style}><v>{value}</v></c>'
            elif value:
                strings.append(value)
                cells += f'<c r="{column}{number}" t="s"><v>{len(strings) - 1}</v></c>'
        lines.append(f'<row r="{number}">{cells}</row>')
    return zipped(
        {
            "_rels/.rels": relations(("a", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns:r="r"><sheets><sheet name="{sheet}" r:id="s1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                ("s1", "worksheet", "worksheets/sheet1.xml"),
                ("s2", "sharedStrings", "sharedStrings.xml"),
                ("s3", "styles", "styles.xml"),
            ),
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{''.join(lines)}</sheetData></worksheet>",
            "xl/sharedStrings.xml": "<sst>"
            + "".join(f"<si><t>{text}</t></si>" for text in strings)
            + "</sst>",
            "xl/styles.xml": '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        }
    )


def epub(chapters: list[tuple[str, str]], **more: str) -> bytes:
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="OEBPS/book.opf"/></container>',
            "OEBPS/book.opf": "<package><metadata><title>Tides</title><creator>Ann Moe</creator></metadata>"
            f"<manifest>{items}{more.get('items', '')}</manifest>"
            f"<spine>{order}{more.get('spine', '')}</spine></package>",
            **{
                f"OEBPS/c{n}.xhtml": f"<html><body><h1>{title}</h1><p>{text}</p></body></html>"
                for n, (title, text) in enumerate(chapters)
            },
        }
    )


def mail(subject: str, text: str, number: int = 1) -> bytes:
    return (
        f"From: Alice Berg <alice@example.org>\nTo: bob@example.org\nSubject: {subject}\n"
        f"Date: Sat, 25 Apr 2026 10:0{number % 10}:00 +0200\nMessage-ID: <{number}@example.org>\n\n{text}\n"
    ).encode()


def mbox(mails: list[bytes]) -> bytes:
    return b"".join(b"From alice@example.org Sat Apr 25 10:00:00 2026\n" + text + b"\n" for text in mails)
