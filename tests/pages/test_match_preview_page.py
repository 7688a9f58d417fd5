"""The preview of a list on the page /match, and its doubts, in Chromium."""

import csv
import io
import re
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import openpyxl
import pytest
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from tests.pages.test_match_decisions import DOUBTS
from tests.pages.test_match_page import (
    PAGE,
    PASTED,
    choose,
    downloaded,
    file_of,
    match,
    press,
    question,
    rows_in,
    saved,
    work_left,
)
from tests.support.browser import SCREENSHOTS, axe_faults, hold, visit
from tests.support.workbooks import workbook_of

PREVIEW = "**/api/census/localidades/match/preview/**"
pytestmark = pytest.mark.usefixtures("opened_match")


def book_of() -> list[FilePayload]:
    """Return a workbook with a cover, titles above the table, and a total below it."""
    data = workbook_of(
        ("Visitas de campo",), (), ("Folio", "Localidad", "Municipio", "Entidad"),
        (1, "Asientos", "Municipio 002", "Ags."), (2, "Ninguno", "Municipio 001", "Ags."),
        (None, "Total", 2), (None, "Fuente: padrón"), ("Notas",),
        sheet="Visitas", change=lambda book: book.create_sheet("Portada", 0).append(["sitio", "zona"]),
    )  # fmt: skip
    return file_of("visitas.xlsx", data)


def summary(page: Page) -> Locator:
    return page.locator("#summary")


def preview(page: Page) -> Locator:
    return page.locator("#sample-region")


def column(page: Page, name: str) -> Locator:
    """Return the choice of what a column contains."""
    return preview(page).get_by_label(name, exact=True)


async def test_workbook_is_understood_and_its_columns_are_changed_or_left_out(page: Page) -> None:
    await expect(summary(page)).to_be_hidden()
    beside = workbook_of(
        ("Localidad", "Entidad", None, "giro"), ("Asientos", "Ags.", None, "x"),
        change=lambda book: setattr(book.worksheets[0].auto_filter, "ref", "A1:B2"),
    )  # fmt: skip
    await choose(page, file_of("a.xlsx", beside))
    await expect(page.locator("#note")).to_contain_text("column F")
    await choose(page, book_of())
    await expect(page.locator("#note")).to_be_hidden()
    read = "Sheet “Visitas”, header in row 3, 5 rows. Name: Localidad"
    await expect(summary(page)).to_have_text(f"{read} · Municipio: Municipio · Estado: Entidad")
    await expect(preview(page).get_by_role("row")).to_have_count(6)
    await expect(preview(page).get_by_role("row").nth(2)).to_have_text("2NingunoMunicipio 001Ags.")
    await expect(column(page, "Localidad")).to_have_value("nombre")
    await expect(column(page, "Folio")).to_have_value("")
    await column(page, "Municipio").select_option("— not used")
    await expect(summary(page)).to_have_text(f"{read} · Estado: Entidad")
    await column(page, "Entidad").select_option("Municipio")
    await expect(summary(page)).to_have_text(f"{read} · Municipio: Entidad")
    async with page.expect_request("**/match/?*") as asking:
        await press(page)
    query = parse_qs(urlsplit((await asking.value).url).query, keep_blank_values=True)
    assert {role: query.get(role) for role in ("nombre", "municipio", "estado")} == {
        "nombre": None, "municipio": ["Entidad"], "estado": [""],
    }  # fmt: skip


async def query_of_match(page: Page, button: str = "Add keys") -> dict[str, list[str]]:
    """Press a button that matches the list, and wait for the result; return the query of the request."""
    async with page.expect_request("**/match/?*") as asking:
        await press(page, button)
    await expect(page.locator("#result-title")).to_be_focused()  # until then, questions are of the match before
    return parse_qs(urlsplit((await asking.value).url).query)


async def test_areas_and_options_of_the_last_match_are_kept(page: Page) -> None:
    await choose(page, file_of("a.csv", b"Localidad,Casos\nNinguno,1\nXyzzy,2\n"))
    await page.locator("#of-estado").select_option("Aguascalientes")
    await page.locator("#of-municipio").select_option("Municipio 001")
    query = await query_of_match(page)
    areas = (query["estado"], query["municipio"])
    assert areas == (["Aguascalientes"], ["Municipio 001"])
    await question(page, "Row 2").get_by_role("radio", name="Ninguno (0003)").check()
    await work_left(page)
    await page.get_by_label("Minimum certainty").fill("90")
    await page.locator("[name=field][value=ambito]").check()
    await query_of_match(page)
    await page.reload()
    estado, municipio = (page.locator(f"#of-{role} option:checked") for role in ("estado", "municipio"))
    await expect(estado).to_have_text("— as they say")
    query = await query_of_match(page, "Continue")
    assert (query["estado"], query["municipio"], query["sure"]) == (*areas, ["0.9"])
    await expect(municipio).to_have_text("Municipio 001")
    await expect(question(page, "Row 2").get_by_role("radio", name="Ninguno (0003)")).to_be_checked()
    assert (await saved(page, "outcome", "ambito"))[0] == ("chosen", "R")


async def test_refused_file_leaves_nothing_of_the_one_before(page: Page) -> None:
    understood = page.get_by_role("heading", name="What was understood")
    for _ in range(2):
        await choose(page, file_of("a.csv", b"Localidad\nNinguno\n"))
        await expect(preview(page)).to_contain_text("Ninguno")
        await choose(page, file_of("a.csv", b"%PDF-1.7"))
        await expect(page.get_by_role("alert")).to_contain_text("The file is a PDF")
        await expect(understood).to_be_hidden()
    await choose(page, file_of("b.csv", b"Localidad\nAsientos\n"))
    await expect(preview(page)).to_contain_text("Asientos")
    await page.route("**/match/preview/**", lambda route: route.abort())
    await choose(page, file_of("c.csv", b"Localidad\nNinguno\n"))
    await expect(page.get_by_role("alert")).to_contain_text("can’t be reached")
    await expect(preview(page)).to_be_hidden()


async def test_areas_of_all_rows_are_proposed_from_the_certain_ones(page: Page) -> None:
    names = "Peñón Ñandú Doble", "San José del Río", "Ardillas de Abajo (Las Ardillas)", "Ninguno"
    await match(page, "\n".join(["Localidad", *names]))
    same = page.locator("#same")
    await expect(same).to_contain_text("The 3 rows with a key are of Municipio 001.")
    query = await query_of_match(page, "All rows are: add keys again")
    assert (query["estado"], query["municipio"]) == (["Aguascalientes"], ["Municipio 001"])
    await expect(same).to_be_hidden()
    await match(page, "\n".join(["Localidad,Estado", "El Bellaco [Rancho],Zac.", *names]))
    await expect(page.locator("#progress")).to_have_text("Rows done: 5")
    await expect(same).to_be_hidden()


async def test_unused_column_of_estados_is_told_before_the_match(page: Page) -> None:
    note = page.locator("#note")
    await choose(page, file_of("a.csv", b"Municipio,Giro\nMunicipio 001,Comercio\nMunicipio 002,Servicios\n"))
    await expect(note).to_contain_text("Each row is read as an area. If the column “Giro” has the places")
    await page.get_by_label("What each row is").select_option("municipio")
    await expect(note).to_be_hidden()
    header = "Estado de la república"
    await choose(page, file_of("a.csv", f"Localidad,{header},Giro\nNinguno,?,Comercio\n".encode()))
    await expect(note).to_contain_text(f"The column “{header}” isn’t used. If it has the estado of each row")
    await column(page, header).select_option("Estado")
    await expect(note).to_be_hidden()
    await page.locator("#of-estado").select_option("Aguascalientes")  # instead of the column
    assert (await query_of_match(page))["estado"] == ["Aguascalientes"]
    await column(page, header).select_option("Estado")
    await expect(page.locator("#of-estado")).to_have_value("")
    assert (await query_of_match(page))["estado"] == [header]


async def test_unrecognized_sheet_is_explained_and_another_chosen(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True, color_scheme="light") as page:
        await page.goto(f"{PAGE}&lang=es")
        await choose(page, book_of(), "Elegir archivo")
        await page.get_by_label("Hoja").select_option("Portada")
        alert = page.get_by_role("alert")
        await expect(alert).to_have_text(
            "No se reconoció la columna con el nombre del lugar. Elija abajo qué contiene cada columna, u otra hoja:"
            " Visitas."
        )
        await expect(summary(page)).to_be_empty()
        assert await axe_faults(page) == {}
        await page.screenshot(path=SCREENSHOTS / "match-wrong-sheet.png", full_page=True)
        await column(page, "sitio").select_option("Nombre")
        await expect(summary(page)).to_have_text("Hoja «Portada», encabezado en la fila 1, 0 filas. Nombre: sitio")
        await page.get_by_label("Hoja").select_option("Visitas")
        await expect(summary(page)).to_contain_text("Hoja «Visitas», encabezado en la fila 3, 5 filas. Nombre: Loc")
        await expect(alert).to_be_empty()
        await page.get_by_label("Fila del encabezado").fill("4")
        await page.get_by_label("Fila del encabezado").press("Tab")
        await expect(summary(page)).to_contain_text("encabezado en la fila 4, 4 filas.")  # its cells name columns


async def test_long_file_is_previewed_by_its_beginning(page: Page) -> None:
    lines = ["Localidad;Municipio", *(f'"Ninguno\n{number}";{"x" * 990}' for number in range(3_000))]
    await choose(page, file_of("long.csv", "\n".join(lines).encode()))
    await expect(summary(page)).to_have_text(re.compile("more than [0-9,]+ rows. Name: Localidad · Municipio: Mun"))
    rows = int((await summary(page).text_content() or "").split()[2].replace(",", ""))
    assert 1_800 < rows < 2_100  # of 3,000


CALLS = """async (calls) => {
    const csv = await import('/static/csv.js');
    return calls.map(([name, ...values]) => csv[name](...values));
}"""


def csv_calls(delimiter: str) -> list[tuple[Sequence[object], object]]:
    """Return calls of the functions of `csv.js`, each with what it returns."""
    other = ";" if delimiter == "," else ","
    quoted = f'"a{delimiter}b"', '"dos\nlíneas"', '"a ""b"" c"', '""'
    lines = ["a|b|c".replace("|", delimiter), delimiter.join(quoted), f"x{delimiter}y{delimiter}", delimiter, "z"]
    records = [["a", "b", "c"], [*quoted], ["x", "y", ""], ["", ""], ["z"]]
    texts = [end.join(lines) + last for end in ("\n", "\r\n", "\r") for last in ("", end)]
    return [
        *((["parse", text, delimiter], records) for text in texts),
        (["parse", f"x{delimiter}y{delimiter}", delimiter], [["x", "y", ""]]),  # nothing follows the last delimiter
        (["quote", f"a{delimiter}b", delimiter], f'"a{delimiter}b"'),
        *(
            (["quote", text, delimiter], quoted)
            for text, quoted in (('a "b"', '"a ""b"""'), ("a\r", '"a\r"'), ("a b", "a b"))
        ),
        (["join", [["a", f"b{other}c", '"d"']], other, "\r\n"], f'a{other}"b{other}c"{other}"d"\r\n'),
        (["delimiterOf", f"a{delimiter}b{delimiter}c{other}d\na{other}b{other}c{other}d{other}e"], delimiter),
    ]


async def test_cells_of_csv_are_read_and_written_as_they_came(page: Page) -> None:
    calls = [call for delimiter in ",;\t|" for call in csv_calls(delimiter)]
    calls.append((["delimiterOf", "Peñón, El, o La\tn"], "\t"))  # cells that were copied have commas in them
    calls.append((["delimiterOf", "Localidad\nEl Alto, Bajo"], ","))  # a single column
    whole_lines = {
        "a\nb\nc": "a\nb\n", 'a\n"b\nc\nd': "a\n", 'a\n"b\nc"\nd': 'a\n"b\nc"\n',
        '"a\nb\nc': '"a\nb\n',  # never closed
        "abc": "abc",
    }  # fmt: skip
    calls += [(["cut", text], whole) for text, whole in whole_lines.items()]
    assert await page.evaluate(CALLS, [call for call, _ in calls]) == [expected for _, expected in calls]


async def test_pasted_quotation_marks_swallow_no_row(page: Page) -> None:
    texts = {
        'Localidad\tn\n"El Fuerte" 2\t1\n"Otro" 3\t2\nAsientos\t3\n': ['"El Fuerte" 2', '"Otro" 3', "Asientos"],
        'Localidad\tn\n"El Alto\t1\nEl Bajo"\t2\n': ['"El Alto', 'El Bajo"'],
        'Localidad\tn\n"nunca cierra\t1\nAsientos\t2\n': ['"nunca cierra', "Asientos"],
        'Localidad\n"El Fuerte" 2\n"Otro\nAsientos\n': ['"El Fuerte" 2', '"Otro', "Asientos"],
        'Localidad,n\n"Uno, dos",1\nAsientos,2\n': ["Uno, dos", "Asientos"],
        'Localidad\tn\n"""El Fuerte"" 2"\t1\n"dos\nlíneas"\t2\n': ['"El Fuerte" 2', "dos\nlíneas"],
    }
    for pasted, names in texts.items():
        [text] = await page.evaluate(CALLS, [["csvOfPasted", pasted]])
        lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in text else ",")
        assert [row[0] for row in lines][1:] == names
    await match(page, pasted)
    rows = rows_in((await downloaded(page))[1])
    assert [row["Localidad"] for row in rows] == names


async def test_totals_and_sources_are_left_as_they_are(page: Page) -> None:
    await choose(page, book_of())
    await press(page)
    every = page.locator("#every")
    await every.locator("summary").click()
    await every.get_by_label("Outcome").select_option("no place, unchanged")
    await expect(every.locator("tbody td:nth-child(2)")).to_have_text(["Total, 2", "Fuente: padrón", "Notas"])
    await expect(page.locator("#totals li")).to_have_text(["1 identical", "1 to decide"])
    content = (await downloaded(page, "Download Excel"))[1]
    sheet = openpyxl.load_workbook(io.BytesIO(content))["Visitas"]
    below = [[cell for cell in row[4:] if cell is not None] for row in sheet.iter_rows(min_row=6, values_only=True)]
    assert below == [[], [], []]


async def test_likeliest_options_are_accepted_with_a_bound_and_taken_back(page: Page) -> None:
    await match(page, f"{DOUBTS}Ninguno\tAgs.\nNinguno\tAgs.\nNinguno\t\n")
    decided, bound = page.locator("#decided"), page.get_by_label("Likeliest option of at least")
    await expect(decided).to_have_text("Decided: 0 of 4")
    shares = [await question(page, f"Row {row}").locator(".share").first.inner_text() for row in (2, 3, 8)]
    several, asientos, without_estado = (int(share.removesuffix(" %")) for share in shares)
    assert without_estado < 50 <= several < asientos
    await bound.fill(str(asientos + 1))
    accept = page.get_by_role("button", name="Accept unseen")
    await expect(accept).to_be_disabled()
    await bound.fill(str(asientos))
    await expect(accept).to_have_text("Accept unseen (1 row)")
    await bound.fill("1")  # never below 50 %
    await expect(accept).to_have_text("Accept unseen (4 rows)")
    await page.locator("#difference").select_option("spelling")
    await expect(accept).to_have_text("Accept unseen (1 row)")  # Asintos
    await page.locator("#difference").select_option(index=0)
    await question(page, "Row 2").get_by_role("radio", name="None of these").check()
    await accept.click()
    await expect(decided).to_have_text("Decided: 2 of 4")
    await expect(page.locator("#totals li").filter(has_text="accepted")).to_have_text("1 accepted unseen")
    undo = page.get_by_role("button", name="Take back what was accepted (1)")
    await expect(undo).to_be_focused()
    assert (await saved(page, "outcome"))[:2] == [("rejected",), (f"accepted ({asientos} %)",)]
    await undo.click()
    await expect(decided).to_have_text("Decided: 1 of 4")
    await expect(question(page, "Row 2").get_by_role("radio", name="None of these")).to_be_checked()
    assert (await saved(page, "outcome"))[:2] == [("rejected",), ("ambiguous",)]


async def test_doubts_are_decided_by_keys(page: Page) -> None:
    await match(page, DOUBTS)
    first, second = question(page, "Row 2"), question(page, "Row 3")
    await page.keyboard.press("2")  # nothing is chosen before a question has the focus
    await page.locator("h1").click()
    await page.keyboard.press("n")
    await expect(first).to_be_focused()
    await expect(page.locator("#decided")).to_have_text("Decided: 0 of 3")
    await page.keyboard.press("2")  # and goes on
    await expect(first.get_by_role("radio").nth(1)).to_be_checked()
    await expect(second).to_be_focused()
    await page.keyboard.press("n")
    await expect(second).to_be_focused()
    await page.keyboard.press("0")
    await expect(second.get_by_role("radio", name="None of these")).to_be_checked()
    search = second.get_by_role("combobox", name="Search for another place")
    await search.press_sequentially("n1")
    await expect(search).to_have_value("n1")
    await search.press("Shift+Tab")
    await page.keyboard.press("p")
    await expect(first).to_be_focused()
    await expect(page.locator("#decided")).to_have_text("Decided: 2 of 3")
    await page.get_by_label("Order").select_option("Most certain first")
    await expect(page.locator(".question legend").first).to_contain_text("Row 3")


async def test_saved_file_has_the_data_that_were_checked(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill(f"{DOUBTS}Aguascalientes\tAgs.\n")
    await expect(preview(page).get_by_role("row")).to_have_count(6)
    for field in ("label", "municipio", "estado", "clave,cve_ent,cve_mun,cvegeo_mun", "altitud"):
        await page.locator(f"[name=field][value='{field}']").set_checked(field != "label")
    async with page.expect_request("**/match/?*") as asking:
        await press(page)
    query = parse_qs(urlsplit((await asking.value).url).query)
    assert query["answer_columns"] == ["outcome,cvegeo,municipio,estado,clave,cve_ent,cve_mun,cvegeo_mun,altitud"]
    await question(page, "Row 2").get_by_role("radio", name="Ninguno (0002)").check()
    second = question(page, "Row 3")
    await second.get_by_role("radio", name="None of these").check()
    await second.get_by_role("combobox").press_sequentially("bellaco")
    await second.get_by_role("option", name="El Bellaco").click()
    content = (await downloaded(page))[1]
    names = ("municipio", "estado", "clave", "cvegeo_mun", "altitud")
    answers = [tuple(row[f"match_{name}"] for name in names) for row in rows_in(content)]
    assert answers[0] == ("Municipio 001", "Aguascalientes", "0002", "01001", "")
    assert answers[1][2:4] == ("0044", "32058")
    assert all(answers[1])
    assert b"match_nombre" not in content


async def test_match_waits_for_what_was_entered_last(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill(DOUBTS)
    await expect(column(page, "Estado")).to_be_visible()
    held = await hold(page, PREVIEW)
    for pasted in (PASTED, "nombre\nAsientos\n"):
        await page.get_by_label("Or paste a list").fill(pasted)
        await held.asked()
        await column(page, "Estado").select_option("Municipio")  # of the list before, which is still shown
    await press(page)
    await expect(page.locator("#understood")).to_have_attribute("aria-busy", "true")
    held.release()
    await expect(page.locator("#understood")).to_have_attribute("aria-busy", "false")
    await expect(summary(page)).to_have_text("1 row. Name: nombre")
    await expect(page.locator("#progress")).to_have_text("Rows done: 1")


async def test_sheet_without_a_header_is_matched_and_saved(browser: Browser, base: str) -> None:
    places = workbook_of(("Asientos", "Ags."), ("Ninguno", "Ags."), sheet="Lista")
    async with visit(browser, base, errors=True, accept_downloads=True) as page:
        await page.goto(f"{PAGE}&lang=es")
        await choose(page, file_of("a.xlsx", places), "Elegir archivo")
        await expect(summary(page)).to_have_text("Hoja «Lista», sin encabezado, 2 filas. Nombre · Estado")
        headless = page.get_by_label("Mis datos no tienen encabezado")
        await expect(headless).to_be_checked()
        await expect(page.get_by_label("Fila del encabezado")).to_be_disabled()
        await press(page, "Asignar claves")
        await question(page, "Fila 2: Ninguno").get_by_role("radio", name="Ninguno (0003)").check()
        content = (await downloaded(page, "Descargar Excel"))[1]
        table = [*openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)]
        assert [(row[0], *row[2:4]) for row in table][1] == ("Ninguno", "elegida", "010010003")
        await headless.uncheck()
        await expect(page.get_by_role("alert")).to_contain_text("Solo se reconoció su estado. Si Asientos")
        await expect(page.get_by_label("Fila del encabezado")).to_be_enabled()
