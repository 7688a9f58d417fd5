"""The preview of a list on the page /match, and its doubts, in Chromium."""

import io
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import openpyxl
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from tests.pages.conftest import PAGE
from tests.pages.test_match_page import PASTED, downloaded, file_of, match, question, rows_in
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, hold, visit
from tests.support.workbooks import workbook_of

PREVIEW = "**/api/census/localidades/match/preview/**"
DOUBTS = "Localidad\tEstado\n" + "".join(f"{name}\tAgs.\n" for name in ("Ninguno", "Azientos", "Asientos", "Xyzzy"))
TOUCH: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def book_of(name: str = "visitas.xlsx") -> list[FilePayload]:
    """Return a workbook with a cover, titles above the table, and a total below it."""
    data = workbook_of(
        ("Visitas de campo",), (), ("Folio", "Localidad", "Municipio", "Entidad"),
        (1, "Asientos", "Municipio 002", "Ags."), (2, "Ninguno", "Municipio 001", "Ags."),
        (None, "Total", 2), (None, "Fuente: padrón"), ("Notas",),
        sheet="Visitas", change=lambda book: book.create_sheet("Portada", 0).append(["sitio", "zona"]),
    )  # fmt: skip
    return [{"name": name, "mimeType": "", "buffer": data}]


async def choose(page: Page, files: list[FilePayload]) -> None:
    await page.get_by_label("Choose a file").set_input_files(files)


def summary(page: Page) -> Locator:
    return page.locator("#summary")


def preview(page: Page) -> Locator:
    return page.locator("#sample-region")


def column(page: Page, name: str) -> Locator:
    """Return the choice of what a column contains."""
    return preview(page).get_by_label(name, exact=True)


async def test_workbook_is_understood_before_it_is_matched(page: Page) -> None:
    await expect(summary(page)).to_be_hidden()
    await choose(page, book_of())
    await expect(summary(page)).to_have_text(
        "Sheet “Visitas”, header in row 3, 5 rows. Name: Localidad · Municipio: Municipio · Estado: Entidad"
    )
    await expect(preview(page).get_by_role("row")).to_have_count(6)
    await expect(preview(page).get_by_role("row").nth(2)).to_have_text("2NingunoMunicipio 001Ags.")
    await expect(column(page, "Localidad")).to_have_value("nombre")
    await expect(column(page, "Folio")).to_have_value("")
    await page.get_by_label("Row of the header").fill("4")
    await page.get_by_label("Row of the header").press("Tab")
    await expect(page.get_by_role("alert")).to_contain_text("The column with the name of the place was not recognized.")
    await expect(column(page, "Asientos")).to_have_value("")


async def test_page_says_that_other_cells_are_beside_the_list(page: Page) -> None:
    note = page.locator("#note")
    data = workbook_of(
        ("Localidad", "Entidad", None, "giro"), ("Asientos", "Ags.", None, "x"),
        change=lambda book: setattr(book.worksheets[0].auto_filter, "ref", "A1:B2"),
    )  # fmt: skip
    await page.goto(f"{PAGE}&lang=es")
    await page.get_by_label("Elegir archivo").set_input_files(file_of("a.xlsx", data))
    await expect(note).to_have_text(
        "Las respuestas empiezan en la columna E, separadas de la lista por otras celdas, y no se mueven con ella al"
        " ordenarla: pase esas celdas a otra hoja y vuelva a enviar el libro."
    )
    assert await axe_faults(page) == {}
    await page.screenshot(path=SCREENSHOTS / "match-note.png", full_page=True)
    await page.get_by_label("Elegir archivo").set_input_files(book_of())
    await expect(note).to_be_hidden()


async def test_columns_are_changed_and_left_out(page: Page) -> None:
    await choose(page, book_of())
    await column(page, "Municipio").select_option("— not used")
    await expect(summary(page)).to_have_text(
        "Sheet “Visitas”, header in row 3, 5 rows. Name: Localidad · Estado: Entidad"
    )
    await column(page, "Entidad").select_option("Municipio")
    await expect(summary(page)).to_have_text(
        "Sheet “Visitas”, header in row 3, 5 rows. Name: Localidad · Municipio: Entidad"
    )
    async with page.expect_request("**/match/?*") as asking:
        await page.get_by_role("button", name="Add keys").click()
    query = parse_qs(urlsplit((await asking.value).url).query, keep_blank_values=True)
    assert {role: query.get(role) for role in ("nombre", "municipio", "estado")} == {
        "nombre": None, "municipio": ["Entidad"], "estado": [""],
    }  # fmt: skip
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()


async def test_unrecognized_sheet_is_explained_and_another_chosen(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True, color_scheme="light") as page:
        await page.goto(f"{PAGE}&lang=es")
        await page.get_by_label("Elegir archivo").set_input_files(book_of())
        await page.get_by_label("Hoja").select_option("Portada")
        await expect(page.get_by_role("alert")).to_have_text(
            "No se reconoció la columna con el nombre del lugar. Elija abajo qué contiene cada columna, u otra hoja:"
            " Visitas."
        )
        await expect(summary(page)).to_be_empty()
        assert await axe_faults(page) == {}
        await page.screenshot(path=SCREENSHOTS / "match-wrong-sheet.png", full_page=True)
        await column(page, "sitio").select_option("Nombre")
        await expect(summary(page)).to_have_text("Hoja «Portada», encabezado en la fila 1, 0 filas. Nombre: sitio")
        await page.get_by_label("Hoja").select_option("Visitas")
        await expect(summary(page)).to_contain_text(
            "Hoja «Visitas», encabezado en la fila 3, 5 filas. Nombre: Localidad"
        )
        await expect(page.get_by_role("alert")).to_be_empty()


async def test_long_file_is_previewed_by_its_beginning(page: Page) -> None:
    lines = ["Localidad;Municipio", *(f'"Ninguno\n{number}";{"x" * 90}' for number in range(30_000))]
    await choose(page, file_of("long.csv", "\n".join(lines).encode()))
    await expect(summary(page)).to_have_text(
        re.compile("more than [0-9,]+ rows. Name: Localidad · Municipio: Municipio")
    )
    rows = int((await summary(page).text_content() or "").split()[2].replace(",", ""))
    assert 18_000 < rows < 21_000  # of 30,000


async def test_only_one_file_is_taken(page: Page) -> None:
    dropped = await page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            for (const name of ["a.csv", "b.csv"]) transfer.items.add(new File(["nombre\\nAsientos\\n"], name));
            return transfer;
        }"""
    )
    await page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    await expect(page.get_by_role("alert")).to_have_text("Choose a single file; these were several: a.csv, b.csv.")
    await expect(page.get_by_role("heading", name="What was understood")).to_be_hidden()


async def test_pasted_quotation_marks_swallow_no_row(page: Page) -> None:
    for pasted, names in (
        ('Localidad\tn\n"El Fuerte" 2\t1\n"Otro" 3\t2\nAsientos\t3\n', ['"El Fuerte" 2', '"Otro" 3', "Asientos"]),
        ('Localidad\tn\n"El Alto\t1\nEl Bajo"\t2\n', ['"El Alto', 'El Bajo"']),
        ('Localidad\tn\n"nunca cierra\t1\nAsientos\t2\n', ['"nunca cierra', "Asientos"]),
        ('Localidad\tn\n"""El Fuerte"" 2"\t1\n"dos\nlíneas"\t2\n', ['"El Fuerte" 2', "dos\nlíneas"]),
        ('Localidad\n"El Fuerte" 2\n"Otro\nAsientos\n', ['"El Fuerte" 2', '"Otro', "Asientos"]),
        ('Localidad,n\n"Uno, dos",1\nAsientos,2\n', ["Uno, dos", "Asientos"]),
    ):
        await page.goto(PAGE)
        await page.get_by_label("Or paste a list").fill(pasted)
        await expect(summary(page)).to_have_text(f"{len(names)} rows. Name: Localidad")
        await match(page, pasted)
        rows = rows_in((await downloaded(page))[1])
        assert [row["Localidad"] for row in rows] == names


CALLS = """async (calls) => {
    const csv = await import('/static/csv.js');
    return calls.map(([name, ...given]) => csv[name](...given));
}"""


async def test_cells_of_csv_are_read_and_written_as_they_came(page: Page) -> None:
    for delimiter in (",", ";", "\t", "|"):
        other = ";" if delimiter == "," else ","
        quoted = f'"a{delimiter}b"', '"dos\nlíneas"', '"a ""b"" c"', '""'
        lines = ["a|b|c".replace("|", delimiter), delimiter.join(quoted), f"x{delimiter}y{delimiter}", delimiter, "z"]
        records = [["a", "b", "c"], [*quoted], ["x", "y", ""], ["", ""], ["z"]]
        texts = [end.join(lines) + last for end in ("\n", "\r\n", "\r") for last in ("", end)]
        calls: list[list[Any]] = [["parse", text, delimiter] for text in texts]
        calls.append(["parse", f"x{delimiter}y{delimiter}", delimiter])  # nothing follows the last delimiter
        calls += [["quote", text, delimiter] for text in (f"a{delimiter}b", 'a "b"', "a\r", "a\n", "a b")]
        calls.append(["join", [["a", f"b{other}c", '"d"']], other, "\r\n"])
        calls.append(["delimiterOf", f"a{delimiter}b{delimiter}c{other}d\na{other}b{other}c{other}d{other}e"])
        calls.append(["delimiterOf", f"SEP={delimiter}\na{other}b{other}c"])
        calls.append(["delimiterOf", "a|b;c,d"])
        found = await page.evaluate(CALLS, calls)
        assert found[: len(texts)] == [records] * len(texts)
        assert found[len(texts) :] == [
            [["x", "y", ""]],
            f'"a{delimiter}b"', '"a ""b"""', '"a\r"', '"a\n"', "a b",
            f'a{other}"b{other}c"{other}"d"\r\n',
            delimiter, delimiter, ",",
        ]  # fmt: skip


async def test_text_is_cut_at_a_line_end_outside_quotes(page: Page) -> None:
    texts = {
        "a\nb\nc": "a\nb\n",
        'a\n"b\nc\nd': "a\n",
        'a\n"b\nc"\nd': 'a\n"b\nc"\n',
        '"a\nb\nc': '"a\nb\n',  # never closed
        "abc": "abc",
    }
    assert await page.evaluate(CALLS, [["cut", text] for text in texts]) == [*texts.values()]


async def test_place_that_is_called_like_a_total_is_a_place(page: Page) -> None:
    await match(page, "Localidad\tEntidad\nTotal\tAgs.\nTotal\t2\n")
    await page.get_by_text("1 row without a place, unchanged").click()
    await expect(page.locator("#apart tbody tr")).to_have_text(["3Total, 2"])
    await expect(page.locator("#totals li")).to_have_text(["1 not found"])


async def test_totals_and_sources_are_left_as_they_are(page: Page) -> None:
    await choose(page, book_of())
    await page.get_by_role("button", name="Add keys").click()
    apart = page.get_by_text("3 rows without a place, unchanged")
    await apart.click()
    await expect(page.locator("#apart tbody tr")).to_have_text(["6Total, 2", "7Fuente: padrón", "8Notas"])
    await expect(page.locator("#totals li")).to_have_text(["1 identical", "1 to decide"])
    content = (await downloaded(page, "Download Excel"))[1]
    sheet = openpyxl.load_workbook(io.BytesIO(content))["Visitas"]
    below = [[cell for cell in row[4:] if cell is not None] for row in sheet.iter_rows(min_row=6, values_only=True)]
    assert below == [[], [], []]


async def test_likeliest_options_are_accepted_and_taken_back(page: Page) -> None:
    await match(page, f"{DOUBTS}Ninguno\tAgs.\nNinguno\tAgs.\n")
    decided = page.locator("#decided")
    await expect(decided).to_have_text("Decided: 0 of 2")
    first = question(page, "Row 2").get_by_role("radio").first
    scores = [await page.locator(".question .share").nth(at).text_content() for at in (0, 2)]
    mean = sum(times * float((score or "").removesuffix(" %")) for times, score in zip((3, 1), scores, strict=True)) / 4
    accept = page.get_by_role("button", name="Accept the likeliest option in all")
    shown = int((await accept.text_content() or "").partition("(")[2].partition(" ")[0])
    assert abs(shown - mean) <= 1
    await question(page, "Row 3").get_by_role("radio", name="None of these").check()
    await accept.click()
    await expect(decided).to_have_text("Decided: 2 of 2")
    await expect(first).to_be_checked()
    await expect(accept).to_be_hidden()
    undo = page.get_by_role("button", name="Take back what was accepted (1)")
    await expect(undo).to_be_focused()
    assert [row["match_outcome"] for row in rows_in((await downloaded(page))[1])][:2] == ["chosen", "none"]
    await undo.click()
    await expect(decided).to_have_text("Decided: 1 of 2")
    await expect(first).not_to_be_checked()
    await expect(question(page, "Row 3").get_by_role("radio", name="None of these")).to_be_checked()
    assert [row["match_outcome"] for row in rows_in((await downloaded(page))[1])][:2] == ["ambiguous", "none"]


async def test_doubts_are_decided_by_keys(page: Page) -> None:
    await match(page, DOUBTS)
    first, second = question(page, "Row 2"), question(page, "Row 3")
    await page.keyboard.press("2")  # nothing is chosen before a question has the focus
    await page.keyboard.press("n")
    await expect(first).to_be_focused()
    await expect(page.locator("#decided")).to_have_text("Decided: 0 of 2")
    await page.keyboard.press("2")
    await expect(first.get_by_role("radio").nth(1)).to_be_checked()
    await page.keyboard.press("ArrowDown")
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
    await expect(page.locator("#decided")).to_have_text("Decided: 2 of 2")


async def test_doubts_come_one_after_the_other_on_a_telephone(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True, accept_downloads=True, **TOUCH) as page:
        await page.goto(f"{PAGE}&lang=es")
        await page.get_by_label("O pegue una lista").fill(DOUBTS)
        await page.get_by_role("button", name="Asignar claves").click()
        await expect(page.get_by_role("heading", name="Resultado")).to_be_focused()
        first, second = question(page, "Fila 2"), question(page, "Fila 3")
        await expect(page.locator("#steps span")).to_have_text("1 / 2")
        await expect(first).to_be_visible()
        await expect(second).to_be_hidden()
        await first.get_by_role("radio", name="Ninguno (0002)").check()
        assert await page.evaluate("() => document.documentElement.scrollWidth") <= 390
        await page.screenshot(path=SCREENSHOTS / "match-doubt-telephone.png", full_page=True)
        await page.get_by_role("button", name="Siguiente duda").click()
        await expect(second).to_be_focused()
        await expect(first).to_be_hidden()
        await expect(page.get_by_role("button", name="Siguiente duda")).to_be_disabled()
        await second.get_by_role("radio", name="Asientos").first.check()
        await page.get_by_role("button", name="Anterior").click()
        await expect(first.get_by_role("radio", name="Ninguno (0002)")).to_be_checked()
        rows = rows_in((await downloaded(page, "Descargar Excel"))[1])
        assert [row["Clave INEGI (CVEGEO)"] for row in rows][:2] == ["010010002", "010020001"]


async def test_saved_file_has_the_data_that_were_checked(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill(f"{DOUBTS}Aguascalientes\tAgs.\n")
    for name in ("Official name", "Keys of estado", "Altitude"):
        await page.get_by_label(name).set_checked(name != "Official name")
    async with page.expect_request("**/match/?*") as asking:
        await page.get_by_role("button", name="Add keys").click()
    assert "fields=municipio%2Cestado%2Cclave%2Ccve_ent%2Ccve_mun%2Ccvegeo_mun%2Caltitud" in (await asking.value).url
    await question(page, "Row 2").get_by_role("radio", name="Ninguno (0002)").check()
    second = question(page, "Row 3")
    await second.get_by_role("radio", name="None of these").check()
    await second.get_by_role("combobox").press_sequentially("bellaco")
    await second.get_by_role("option", name="El Bellaco").click()
    rows = rows_in((await downloaded(page))[1])
    names = ("municipio", "estado", "clave", "cvegeo_mun", "altitud")
    found = [tuple(row[f"match_{name}"] for name in names) for row in rows]
    assert found[0] == ("Municipio 001", "Aguascalientes", "0002", "01001", "")
    assert found[1][2:4] == ("0044", "32058")
    assert all(found[1])
    assert "match_nombre" not in rows[0]


async def test_certain_and_chosen_places_are_on_the_map(with_webgl: Browser, base: str) -> None:
    features = """async () => {
        const { src } = document.querySelector("script[src*='match.js']");
        const { shown } = await import(new URL("match_result.js", src));
        const map = await shown.loading;
        while (!(await map.getSource("matched").getData()).features.length) await new Promise(requestAnimationFrame);
        return (await map.getSource("matched").getData()).features.map(({ properties }) => properties.cvegeo);
    }"""
    async with visit(with_webgl, base, viewport=TELEPHONE) as page:
        await page.goto(PAGE)
        await match(page, "nombre,municipio,estado\nAguascalientes,Municipio 001,Ags.\nNinguno,Municipio 001,Ags.\n")
        await page.get_by_text("On the map").click()
        await expect(page.locator("#placed .help")).to_have_text("1 place. Press it to see its row.")
        assert await page.evaluate(features) == ["010010001"]
        await question(page, "Row 3").get_by_role("radio").first.check()
        await expect(page.locator("#placed .help")).to_have_text("2 places. Press one to see its row.")
        assert sorted(await page.evaluate(features)) == ["010010001", "010010002"]


async def test_match_waits_for_what_was_entered_last(page: Page) -> None:
    held = await hold(page, PREVIEW)
    await page.get_by_label("Or paste a list").fill(PASTED)
    await page.get_by_role("button", name="Add keys").click()
    await held.asked()
    await page.get_by_label("Or paste a list").fill("nombre\nAsientos\n")
    held.release()
    await expect(page.locator("#progress")).to_have_text("Rows done: 1")


async def test_table_is_busy_until_what_was_entered_last_is_understood(page: Page) -> None:
    held = await hold(page, PREVIEW)
    for pasted in (PASTED, "nombre\nAsientos\n"):
        await page.get_by_label("Or paste a list").fill(pasted)
        await held.asked()
    await expect(page.locator("#understood")).to_have_attribute("aria-busy", "true")
    held.release()
    await expect(page.locator("#understood")).to_have_attribute("aria-busy", "false")
    await expect(summary(page)).to_have_text("1 row. Name: nombre")


async def test_sheet_without_a_header_is_matched_and_saved(browser: Browser, base: str) -> None:
    places = workbook_of(("Asientos", "Ags."), ("Ninguno", "Ags."), sheet="Lista")
    async with visit(browser, base, errors=True, accept_downloads=True) as page:
        await page.goto(f"{PAGE}&lang=es")
        await page.get_by_label("Elegir archivo").set_input_files(file_of("a.xlsx", places))
        await expect(summary(page)).to_have_text("Hoja «Lista», sin encabezado, 2 filas. Nombre · Estado")
        headless = page.get_by_label("Mis datos no tienen encabezado")
        await expect(headless).to_be_checked()
        await expect(page.get_by_label("Fila del encabezado")).to_be_disabled()
        await page.get_by_role("button", name="Asignar claves").click()
        await question(page, "Fila 2: Ninguno").get_by_role("radio", name="Ninguno (0003)").check()
        content = (await downloaded(page, "Descargar Excel"))[1]
        table = [*openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)]
        assert [(row[0], *row[2:4]) for row in table][1] == ("Ninguno", "elegida", "010010003")
        await headless.uncheck()
        await expect(page.get_by_role("alert")).to_contain_text("No se reconoció la columna con el nombre del lugar.")
        await expect(page.get_by_label("Fila del encabezado")).to_be_enabled()
