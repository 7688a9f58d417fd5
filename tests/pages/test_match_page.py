"""The page that matches a pasted list or a file, in Chromium."""

import asyncio
import csv
import io
import json
import re
from pathlib import Path
from typing import cast

import openpyxl
import pytest
from openpyxl.styles import Font
from playwright.async_api import Browser, FilePayload, FloatRect, Locator, Page, expect

from localidades_api.bulk.workbook_writers import _NUMBERS
from localidades_api.html.static_files import STATIC
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, forget, hold, kept, visit
from tests.support.workbooks import workbook_of

PAGE = "/match?format=api"
RESOURCE = "**/api/census/localidades/match/**"
PASTED = (
    "Folio\tLocalidad\tMpio.\tEntidad\n"
    "007\tAguascalientes\tMunicipio 001\tAgs.\n"
    "008\tAsientoz\tMunicipio 002\tAgs.\n"
    "009\tNinguno\tMunicipio 001\tAgs.\n"
    "010\tNinguno\tMunicipio 001\tAgs.\n"
    '011\t"Xyzzy, ""qwert"""\t\t\n'
    "012\t\tMunicipio 001\tAgs.\n"
)
pytestmark = pytest.mark.usefixtures("opened_match")


async def check_all_columns(page: Page) -> None:
    """Choose all columns of an answer, of which there are three by default."""
    await expect(page.locator("#sample td").first).to_be_visible()
    await page.locator("[name=field][value^=score]").check()


async def press(page: Page, button: str = "Add keys") -> None:
    await page.get_by_role("button", name=button).click()


async def match(page: Page, text: str) -> None:
    """Paste a list and match it."""
    await page.get_by_label("Or paste a list").fill(text)
    await press(page)
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()


async def downloaded(page: Page, button: str = "Download CSV") -> tuple[str, bytes]:
    """Download the file; return its name and its bytes."""
    async with page.expect_download() as downloading:
        await press(page, button)
    download = await downloading.value
    return download.suggested_filename, await asyncio.to_thread(Path(await download.path()).read_bytes)


def rows_in(content: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a downloaded CSV file or workbook."""
    if not content.startswith(b"PK"):
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        return list(csv.DictReader(text, delimiter=delimiter))
    header, *rows = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    texts = ([str("" if cell is None else cell) for cell in row] for row in rows)
    return [dict(zip(map(str, header), row, strict=True)) for row in texts]


async def saved(page: Page, *columns: str, button: str = "Download CSV") -> list[tuple[str, ...]]:
    """Download the file; return these columns of its answers."""
    rows = rows_in((await downloaded(page, button))[1])
    return [tuple(row[f"match_{name}"] for name in columns or ("outcome", "cvegeo")) for row in rows]


def totals(page: Page) -> Locator:
    return page.locator("#totals li")


def question(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name)


def file_of(name: str, content: bytes) -> list[FilePayload]:
    return [{"name": name, "mimeType": "", "buffer": content}]


async def choose(page: Page, files: list[FilePayload] | Path, label: str = "Choose a file") -> None:
    await page.get_by_label(label).set_input_files(files)


async def test_choice_applies_to_every_equal_row_of_the_file(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill(PASTED)
    await check_all_columns(page)
    await match(page, PASTED)
    await expect(totals(page)).to_have_text(
        ["1 identical", "1 with small differences", "2 to decide", "1 not found", "1 unreadable"]
    )
    await expect(page.get_by_role("region", name="Not found or unreadable").get_by_role("row")).to_have_text(
        [
            "Row What it says Reason",
            '6Xyzzy, "qwert"No place is like it.Search for another place',
            "7Municipio 001, Ags.Its nombre is empty, and it has no key to go by.Search for another place",
        ]
    )
    ninguno = question(page, "Row 4: Ninguno, Municipio 001, Ags. (applies to 2 rows)")
    decided = page.locator("#decided")
    await expect(decided).to_have_text("Decided: 0 of 3")
    await ninguno.get_by_role("radio", name="Ninguno (0003), Municipio 001, Aguascalientes").check()
    await expect(decided).to_have_text("Decided: 1 of 3")
    await expect(totals(page).filter(has_text="chosen")).to_have_text("2 chosen")
    name, content = await downloaded(page)
    assert name == "localidades-match.csv"
    assert content.startswith(b"\xef\xbb\xbfFolio,Localidad,Mpio.,Entidad,match_outcome,match_cvegeo,")
    rows = rows_in(content)
    assert [(row["Folio"], row["match_outcome"], row["match_cvegeo"]) for row in rows] == [
        ("007", "exact", "010010001"), ("008", "sure", "010020001"),
        ("009", "chosen", "010010003"), ("010", "chosen", "010010003"), ("011", "none", ""), ("012", "problem", ""),
    ]  # fmt: skip
    assert rows[2]["match_label"] == "Ninguno (0003), Municipio 001, Aguascalientes"
    assert rows[1]["match_faults"].startswith("spelling: asientoz → asientos")
    assert rows[4]["Localidad"] == 'Xyzzy, "qwert"'
    async with page.expect_request("**/match/?*format=xlsx*") as asking:
        name, content = await downloaded(page, "Download Excel")
    assert "release=2020-01" in (await asking.value).url  # of the answers, although another may be published since
    assert name == "localidades-match.xlsx"
    cells = ("Folio", "match_outcome", "match_cvegeo")
    assert [[row[cell] for cell in cells] for row in rows_in(content)] == [
        [row[cell] for cell in cells] for row in rows
    ]


async def test_rejecting_all_candidates_is_kept_and_searches_for_another_place(page: Page) -> None:
    await match(page, PASTED)
    asked = question(page, "Row 4")
    await expect(asked.locator(".choice").first).to_contain_text("rural · population without data")
    search = asked.locator("input[type=search]")
    await expect(search).to_be_hidden()
    await asked.get_by_role("radio").first.focus()
    await page.keyboard.press("ArrowUp")  # from the first to the last
    none = asked.get_by_role("radio", name="None of these")
    await expect(none).to_be_checked()
    await match(page, f"{PASTED}013\tAsientos\t\t\n")
    await expect(none).to_be_checked()
    answers = await saved(page)
    assert (answers[2:4], len(answers)) == ([("rejected", "")] * 2, 7)
    await expect(page.locator("#kept")).to_have_text("What you decided of 2 rows is kept.")
    await search.press_sequentially("bellaco")
    await page.get_by_role("option", name="El Bellaco").click()
    await expect(search).to_have_value(re.compile("El Bellaco"))
    assert (await saved(page))[2:4] == [("chosen", "320580044")] * 2
    await asked.get_by_role("radio").first.check()
    await expect(search).to_be_hidden()


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", b""), ("windows-1252", b"\xef\xbb\xbf")])
async def test_saved_file_adds_the_answer_columns_only(page: Page, encoding: str, mark: bytes) -> None:
    lines = ["Población;Nº;2020", "Peñón Ñandú Doble;1;a", '"Ninguno";2;"b;c"', "Ninguno;3;"]
    await choose(page, file_of("Mi lista.csv", "\r\n".join([*lines, ""]).encode(encoding)))
    await page.get_by_label("Población", exact=True).select_option("Name")
    await press(page)
    await question(page, "Row 3: Ninguno").get_by_role("radio", name="Ninguno (0002)").check()
    name, content = await downloaded(page)
    assert name == "Mi lista-match.csv"
    written = content.removeprefix(mark).decode().splitlines()
    assert all(line.startswith(f"{sent};") for sent, line in zip(lines[:2], written, strict=False))
    answers = rows_in(content, ";")
    assert [(row["2020"], row["match_outcome"]) for row in answers] == [
        ("a", "exact"),
        ("b;c", "chosen"),
        ("", "chosen"),
    ]


async def test_changed_file_must_be_chosen_again(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "places.csv"
    file.write_text("Localidad\nAsientos\n")
    await choose(page, file)
    file.write_text("Localidad\nAsientos\nTepetates\n")
    await press(page)
    await expect(page.get_by_role("alert")).to_have_text("The file has changed since you chose it: choose it again.")
    await choose(page, file)
    await press(page)
    await expect(page.locator("#progress")).to_have_text("Rows done: 2")


async def test_columns_of_a_list_without_a_header_can_be_changed(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill("Ags.\tAsientos\nZac.\tEl Bellaco [Rancho]\n")
    await page.get_by_label("The first row is a place, not a header").check()
    await expect(page.locator("#summary")).to_have_text("2 rows. Name · Municipio")
    await page.get_by_label("Column 2").select_option("Name")
    await expect(page.locator("#summary")).to_have_text("2 rows. Name")
    await page.get_by_label("Column 1").select_option("Estado")
    await expect(page.locator("#summary")).to_have_text("2 rows. Name · Estado")
    await press(page)
    await expect(page.locator("#progress")).to_have_text("Rows done: 2")
    rows = rows_in((await downloaded(page))[1])
    assert [(row["estado"], row["nombre"], row["match_cvegeo"]) for row in rows] == [
        ("Ags.", "Asientos", "010020001"),
        ("Zac.", "El Bellaco [Rancho]", "320580044"),
    ]


DROP = """(texts) => {
    const transfer = new DataTransfer();
    for (const [name, text] of Object.entries(texts)) transfer.items.add(new File([text], name));
    return transfer;
}"""


async def test_single_file_may_be_dropped_and_the_button_stays_in_place(page: Page) -> None:
    button = page.get_by_role("button", name="Add keys")
    held = await hold(page, "**/match/preview/**")
    await page.get_by_label("Or paste a list").fill(PASTED)
    await held.asked()
    before = await button.bounding_box()
    held.release()
    await expect(page.locator("#summary")).to_have_text("6 rows. Name: Localidad · Municipio: Mpio. · Estado: Entidad")
    after = await button.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 60
    list_of_one = "Localidad,Mpio,Estado\nAsientos,Municipio 002,Ags.\n"
    for files in ({"a.csv": list_of_one, "b.csv": ""}, {"dropped.csv": list_of_one}):
        await page.dispatch_event("#rows", "drop", {"dataTransfer": await page.evaluate_handle(DROP, files)})
        if len(files) > 1:
            told = "Choose a single file; these were several: a.csv, b.csv."
            await expect(page.get_by_role("alert")).to_have_text(told)
    await button.click()
    await expect(totals(page).first).to_have_text("1 identical")
    await expect(page.locator("#progress")).to_have_text("Rows done: 1")


async def test_match_may_be_stopped_or_fail_and_is_tried_again_without_loss(page: Page) -> None:
    held = await hold(page, "**/localidades/match/?*")
    await page.get_by_label("Or paste a list").fill(PASTED)
    await press(page)
    await held.asked()
    await press(page, "Stop")
    await expect(page.locator("#progress")).to_have_text("Stopped.")
    await page.unroute_all(behavior="ignoreErrors")
    held.release()
    await page.route(RESOURCE, lambda route: route.abort())
    await press(page)
    await expect(page.get_by_role("alert")).to_contain_text("can’t be reached")
    await page.unroute_all()
    await press(page)
    await expect(page.locator("#progress")).to_have_text("Rows done: 6")


async def test_example_takes_the_place_of_a_list_that_is_being_matched(page: Page) -> None:
    held = await hold(page, "**/localidades/match/?*")
    await page.get_by_label("Or paste a list").fill(PASTED)
    await press(page)
    await held.asked()
    async with page.expect_event("requestfailed"):
        await press(page, "Try an example")
    await held.asked()
    await page.unroute_all(behavior="ignoreErrors")
    held.release()
    await expect(page.locator("#progress")).to_have_text("Rows done: 7")
    await expect(page.get_by_role("button", name="Add keys")).to_be_enabled()


async def test_example_is_matched_by_a_click_and_a_list_by_a_button_that_stays_in_view(page: Page) -> None:
    pasted, button = page.get_by_label("Or paste a list"), page.get_by_role("button", name="Add keys")
    await button.click()
    await expect(pasted).to_be_focused()
    assert await pasted.evaluate("(area) => area.validity.valueMissing")
    await pasted.fill("Aguascalientes")
    await page.get_by_label("Minimum certainty").scroll_into_view_if_needed()
    await expect(button).to_be_in_viewport()
    await button.click()
    await expect(totals(page)).to_have_text("1 identical")
    await press(page, "Try an example")
    await expect(pasted).not_to_have_value("Aguascalientes")
    rows = (await pasted.input_value()).splitlines()[1:]
    await expect(page.locator("#progress")).to_have_text(f"Rows done: {len(rows)}")
    await expect(page.get_by_role("progressbar")).to_be_hidden()
    told = await totals(page).all_text_contents()
    assert sum(int(part.split(" ")[0]) for part in told) == len(rows) > 1
    assert await page.locator("#shares span").count() == len(told)


async def test_unmatched_rows_are_searched_and_chosen_together(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill(PASTED)
    await check_all_columns(page)
    await match(page, f"{PASTED}013\tXyzzy, ...\t\t\n014\tXyzzy, ...\t\t\n")
    for text in ("Xyzzy, ... (applies to 2 rows)", "Its nombre is empty"):
        row = page.locator("#unfound").get_by_role("row", name=text)
        search = row.get_by_role("combobox", name="Search for another place")
        await search.press_sequentially("bellaco")
        await row.get_by_role("option", name="El Bellaco").click()
        await expect(search).to_have_value(re.compile("El Bellaco"))
    await expect(page.locator("#decided")).to_have_text("Decided: 2 of 4")
    for button in ("Download CSV", "Download Excel"):
        assert (await saved(page, "outcome", "cvegeo", "problem", button=button))[4:] == [
            ("none", "", ""), *[("chosen", "320580044", "")] * 3,
        ]  # fmt: skip
    await match(page, f"{PASTED}013\tXyzzy, ...\t\t\n")  # the choice is kept until its text changes
    await expect(search).to_have_value(re.compile("El Bellaco"))
    await search.fill("")
    assert [outcome for (outcome,) in (await saved(page, "outcome"))[5:]] == ["problem", "chosen"]


async def test_many_rows_are_drawn_a_hundred_at_a_time(page: Page) -> None:
    lines = ["nombre,municipio", *(f"Ninguno {number},Municipio 001" for number in range(250))]
    await choose(page, file_of("many.csv", "\n".join(lines).encode()))
    await press(page)
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()  # all of it is drawn
    drawn = page.locator("#decide fieldset, #unfound tbody tr")
    before = await drawn.count()
    assert 0 < before <= 300
    await page.get_by_role("button", name="Show more").first.click()
    assert before < await drawn.count() <= before + 100


async def test_chosen_release_and_certainty_are_used(page: Page) -> None:
    await page.goto(f"{PAGE}&release=2020-01")
    await page.get_by_label("Or paste a list").fill(PASTED)
    slider = page.get_by_label("Minimum certainty")
    await slider.press("ArrowRight")
    await expect(page.locator("#sure-shown")).to_have_text("95.5 %")
    for certain, asked in (("95.5", "sure=0.955"), ("80", "sure=0.8")):
        await slider.fill(certain)
        async with page.expect_request("**/match/?*") as asking:
            await match(page, PASTED)
        assert {"release=2020-01", asked} <= set((await asking.value).url.partition("?")[2].split("&"))


async def test_spanish_result_passes_axe_fits_a_telephone_and_is_saved_in_spanish(browser: Browser, base: str) -> None:
    async with visit(browser, base, accept_downloads=True, color_scheme="light") as page:
        await page.goto("/api/census/?format=api&lang=es")
        await page.get_by_role("link", name="Asignar claves").last.click()
        await page.get_by_label("O pegue una lista").fill(PASTED.replace("010\tNinguno", "010\tXyzzy"))
        await check_all_columns(page)
        await press(page, "Asignar claves")
        await expect(page.locator("#progress")).to_have_text("Filas procesadas: 6")
        await expect(totals(page)).to_have_text(
            ["1 idéntica", "1 con diferencias menores", "1 por decidir", "2 no encontradas", "1 ilegible"]
        )
        await page.locator("#every summary").click()
        await expect(page.locator("#every").get_by_role("row", name="Asientoz")).to_contain_text(
            "ortografía: se escribió asientoz, el catálogo dice asientos"
        )
        assert await axe_faults(page) == {}
        await page.emulate_media(color_scheme="dark")
        assert await axe_faults(page, runOnly=["color-contrast"]) == {}
        await page.set_viewport_size(TELEPHONE)
        await question(page, "Fila 4").get_by_role("radio", name="Ninguno (0003)").check()
        row = page.locator("#unfound").get_by_role("row", name="Xyzzy, Municipio 001")
        await row.get_by_role("combobox", name="Buscar").press_sequentially("bellaco")
        await expect(row.get_by_role("option", name="El Bellaco")).to_be_visible()
        assert await page.evaluate("() => document.documentElement.scrollWidth") <= TELEPHONE["width"]
        await page.screenshot(path=SCREENSHOTS / "match-in-use-telephone.png", full_page=True)
        await row.get_by_role("option", name="El Bellaco").click()
        for button in ("Descargar CSV", "Descargar Excel"):
            name, content = await downloaded(page, button)
            assert name.startswith("localidades-claves.")
            answers = rows_in(content)
            outcomes = ["idéntica", "con diferencias menores", "elegida", "elegida", "no encontrada", "ilegible"]
            assert [row["Resultado"] for row in answers] == outcomes
            assert answers[1]["Diferencias"].startswith("ortografía: asientoz → asientos")
            assert answers[5]["Observación"] == "La fila no tiene “nombre” ni clave."
        await page.get_by_text("Hacerlo desde la terminal").click()
        await expect(page.locator("#curl")).to_contain_text("/api/census/localidades/match/?lang=es'")


async def test_problems_of_files_and_rows_are_in_spanish(page: Page) -> None:
    await page.goto(f"{PAGE}&lang=es")
    for content, sentence in (
        (b"PK\x03\x04 a workbook", "No se puede leer el libro de Excel: guárdelo como .xlsx, sin contraseña"),
        (b'Localidad,x\nNinguno,"open\n', "En la línea 2 se abren comillas que no se cierran"),
    ):
        await choose(page, file_of("list.csv", content), "Elegir archivo")
        await press(page, "Asignar claves")
        await expect(page.get_by_role("alert")).to_contain_text(sentence)
    await choose(page, file_of("list.csv", b"Localidad,lat,lon\n,95,1\nNinguno,1,2,3\n"), "Elegir archivo")
    await press(page, "Asignar claves")
    await expect(page.locator("#unfound tbody td:last-child")).to_contain_text(
        [
            "La fila no tiene nombre ni clave.",
            "Tiene 4 celdas y el encabezado 3: ponga entre comillas la celda que contenga el delimitador.",
        ]
    )


async def test_page_without_scripts_shows_the_command(browser: Browser, base: str) -> None:
    async with visit(browser, base, java_script_enabled=False) as page:
        await page.goto(PAGE)
        await expect(page.get_by_text("This page needs JavaScript.")).to_be_visible()
        await expect(page.get_by_label("Or paste a list")).to_be_hidden()
        await page.get_by_text("The same with a command").click()
        await expect(page.locator("#curl")).to_contain_text("/api/census/localidades/match/'")


def add_cover(book: openpyxl.Workbook) -> None:
    book.worksheets[0]["A1"].font = Font(bold=True)
    book.create_sheet("Portada", 0).append(["Visitas"])


async def test_workbook_is_matched_and_saved_with_choices_and_formats(page: Page) -> None:
    data = workbook_of(
        ("Localidad", "CVE_ENT", "Folio"),
        ("Aguascalientes", 1, 7), ("Ninguno", 1, 8), (), ("Ninguno", 1, 9), ("Xyzzy", 1, 10), ("Ojo <&> de", 1, 11),
        sheet="Lugares & más", change=add_cover,
    )  # fmt: skip
    await choose(page, file_of("Mis visitas.xlsx", data))
    await check_all_columns(page)
    await expect(page.get_by_label("Sheet")).to_have_value("Lugares & más")
    await press(page)
    asked = question(page, "Row 3: Ninguno, 1 (applies to 2 rows)")
    await asked.get_by_role("radio", name="Ninguno (0003)").check()
    name, content = await downloaded(page, "Download Excel")
    assert name == "Mis visitas-match.xlsx"
    workbook = openpyxl.load_workbook(io.BytesIO(content))
    sheet = workbook["Lugares & más"]
    header, *rows = sheet.iter_rows(values_only=True)
    answers = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["Folio"], row["match_outcome"], row["match_cvegeo"]) for row in answers[:5]] == [
        (7, "exact", "010010001"), (8, "chosen", "010010003"), (None, None, None),
        (9, "chosen", "010010003"), (10, "none", None),
    ]  # fmt: skip
    assert isinstance(answers[0]["match_score"], float)
    assert answers[1]["match_score"] is None  # a person has chosen it
    assert answers[1]["match_candidates"]
    assert answers[5]["Localidad"] == "Ojo <&> de"
    assert sheet["A1"].font.bold
    assert workbook["Portada"]["A1"].value == "Visitas"
    assert workbook["Summary"]["A1"].value == "Release"
    computed = openpyxl.load_workbook(io.BytesIO(content), data_only=True)["Summary"]
    counted = [row for row in computed.iter_rows(min_row=6, values_only=True) if row[1]]
    assert counted == [("exact", 1), ("none", 2), ("chosen", 2), ("Rows", 5)]
    [numbers] = re.findall(r"NUMBERS = new Set\((.*)\)", (STATIC / "workbook.js").read_text(encoding="utf-8"))
    assert {*json.loads(numbers)} == _NUMBERS - {"margin", "distancia"}  # which a choice doesn't have


TABLE = (("Localidad", "CVE_ENT", "Lugar"), ("Ninguno", "01", "x"), ("Aguascalientes", "01", "y"))


@pytest.mark.parametrize(
    ("name", "sent", "button"),
    [
        ("a.xlsx", workbook_of(*TABLE), "Descargar Excel"),
        ("a.csv", "\n".join(",".join(row) for row in TABLE).encode(), "Descargar CSV"),
    ],
    ids=["workbook", "text"],
)
async def test_saved_file_is_saved_without_the_service_and_recognized_when_it_comes_back(
    page: Page, base: str, name: str, sent: bytes, button: str
) -> None:
    await page.goto(f"{PAGE}&lang=es")
    for chosen, before in (("Ninguno (0002)", None), ("Ninguno (0003)", "Ninguno (0002)")):
        await choose(page, file_of(name, sent), "Elegir archivo")
        await press(page, "Asignar claves")
        asked = question(page, "Ninguno")
        if before:
            await expect(page.locator("#kept")).to_have_text("Se conservó lo que usted decidió de 1 fila.")
            await expect(asked.get_by_role("radio", name=before)).to_be_checked()
            await asked.locator("legend").click()  # it is folded
        await asked.get_by_role("radio", name=chosen).check()
        await page.route(RESOURCE, lambda route: route.abort())
        sent = (await downloaded(page, button))[1]
        await page.unroute(RESOURCE)
        first, second = rows_in(sent)
        assert list(first) == ["Localidad", "CVE_ENT", "Lugar", "Resultado", "Clave INEGI (CVEGEO)", "Lugar (2)"]
        assert (first["Resultado"], second["Resultado"]) == ("elegida", "idéntica")
        assert first["Lugar (2)"] == f"{chosen}, Municipio 001, Aguascalientes"
        assert first["Lugar"] == "x"
        await page.goto("about:blank")
        await forget(page, base)  # the file itself says what was decided
        await page.goto(f"{PAGE}&lang=es")


BUTTONS = {
    "en": ("Choose a file", "Add keys", "Download Excel"),
    "es": ("Elegir archivo", "Asignar claves", "Descargar Excel"),
}


async def test_keys_typed_into_the_saved_file_are_chosen_and_listed(page: Page, base: str) -> None:
    """Somebody else has answered the doubts: with a key, one without its zero, a copied option, and a word."""
    label, add, download = BUTTONS["es"]
    rows = [*[("Ninguno", "Ags.", folio) for folio in range(5)], ("Xyzzy", "Ags.", 5)]
    await page.goto(f"{PAGE}&lang=es")
    await choose(page, file_of("a.xlsx", workbook_of(("Localidad", "Estado", "Folio"), *rows)), label)
    await press(page, add)
    book = openpyxl.load_workbook(io.BytesIO((await downloaded(page, download))[1]))
    option = "010010003 Ninguno (0003), Municipio 001 (50)"
    for row, key in enumerate(("010010003", 10010002, option, "no sé", None, "010010001"), 2):
        book.worksheets[0].cell(row, 5, key)
    book.save(file := io.BytesIO())
    await page.goto("about:blank")
    await forget(page, base)
    await page.goto(f"{PAGE}&lang=es")
    await choose(page, file_of("a.xlsx", file.getvalue()), label)
    await press(page, add)
    typed = page.locator("#typed")
    await expect(typed).to_contain_text(": 4.")
    await expect(typed).to_contain_text("no sé")
    assert await axe_faults(page) == {}
    for width in (390, 1366):
        await page.set_viewport_size({"width": width, "height": 900})
        await typed.scroll_into_view_if_needed()
        await page.screenshot(path=SCREENSHOTS / f"match-typed-{width}.png")
    await typed.get_by_role("button").click()
    keys = page.locator("#every tbody tr td:nth-child(4)")
    await expect(keys).to_have_text(["010010003", "010010002", "010010003", "010010001"])
    await expect(page.locator("#decided")).to_contain_text("3 de 4")
    again = rows_in((await downloaded(page, download))[1])
    assert [list(row.values())[3:5] for row in again] == [
        ["elegida", "010010003"], ["elegida", "010010002"], ["elegida", "010010003"],
        ["por decidir", ""], ["por decidir", ""], ["elegida", "010010001"],
    ]  # fmt: skip
    assert str(list(again[5].values())[5]).startswith("Aguascalientes, ")
    await page.locator("#decide .open").first.dispatch_event("click")  # back to undecided
    undecided = list(rows_in((await downloaded(page, download))[1])[0].values())
    assert undecided[3:6] == ["por decidir", "", ""]


async def work_left(page: Page) -> None:
    """Wait until the browser has kept what was decided."""
    await page.wait_for_function("""async () => (await indexedDB.databases()).some(({ name }) => name === "match")""")
    await kept(page)


async def test_work_lasts_until_it_is_discarded(page: Page) -> None:
    await choose(page, file_of("visitas.csv", PASTED.encode()))
    await press(page)
    await question(page, "Row 4").get_by_role("radio", name="Ninguno (0003)").check()
    await work_left(page)
    await page.goto(f"{PAGE}&lang=es")
    resume = page.locator("#resume")
    await expect(resume).to_contain_text("“visitas.csv”: Quedan 2 dudas")
    await resume.get_by_role("button", name="Continuar").click()
    await expect(page.locator("#kept")).to_have_text("Se conservó lo que usted decidió de 2 filas.")
    folded = question(page, "Fila 4")
    await expect(folded.get_by_role("radio", name="Ninguno (0003)")).to_be_checked()
    boxes = [await part.bounding_box() for part in (folded, folded.get_by_role("radio", name="Ninguno (0003)"))]
    frame, radio = (cast("FloatRect", box) for box in boxes)
    assert frame["x"] < radio["x"] < frame["x"] + 50  # below the legend, not beside it
    await expect(resume).to_be_hidden()
    await page.goto(PAGE)
    await expect(resume).to_contain_text("2 doubts are left")
    await resume.get_by_role("button", name="Start again").click()
    await expect(resume).to_be_hidden()  # when the browser has forgotten it
    await page.reload()
    await choose(page, file_of("visitas.csv", PASTED.encode()))
    await expect(resume).to_be_hidden()
    await press(page)
    await expect(page.locator("#decided")).to_have_text("Decided: 0 of 3")


async def test_each_sheet_of_a_workbook_keeps_its_work(page: Page) -> None:
    table = ("Localidad", "Estado"), ("Ninguno", "Ags.")

    def add_second(book: openpyxl.Workbook) -> None:
        second = book.create_sheet("Dos")
        for row in table:
            second.append(row)

    book = file_of("visitas.xlsx", workbook_of(*table, sheet="Uno", change=add_second))

    async def match_sheet(name: str) -> Locator:
        """Match a sheet; return the first option of its doubt."""
        await page.get_by_label("Sheet").select_option(name)
        async with page.expect_response("**/localidades/match/?*"):
            await press(page)
        await expect(page.get_by_role("heading", name="Result")).to_be_focused()
        return question(page, "Row 2: Ninguno").get_by_role("radio").first

    await choose(page, book)
    for sheet in ("Uno", "Dos"):
        await expect(first := await match_sheet(sheet)).not_to_be_checked()
        await first.check()
        await work_left(page)
    await page.locator("#result").get_by_role("button", name="Start again").click()
    await expect(page.locator("#decided")).to_have_text("Decided: 0 of 1")
    await work_left(page)
    await page.reload()
    await choose(page, book)
    await expect(await match_sheet("Dos")).not_to_be_checked()
    await expect(await match_sheet("Uno")).to_be_checked()


async def test_every_row_is_found_and_corrected(page: Page) -> None:
    await match(page, PASTED)
    every = page.locator("#every")
    await every.locator("summary").click()
    rows = every.locator("tbody tr")
    await expect(rows).to_have_count(6)
    await every.get_by_label("Search").fill("asientoz")
    await expect(rows).to_have_count(1)
    await every.get_by_label("Search").fill("")
    await every.get_by_label("What differs").select_option("spelling")
    await every.get_by_label("Outcome").select_option("sure")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("button", name="Correct it").click()
    asked = every.get_by_role("group", name="Row 3: Asientoz")
    own, before = asked.get_by_role("radio", name="Asientos, Municipio 002"), await totals(page).all_text_contents()
    await expect(own).to_be_focused()
    await expect(own).to_be_checked()
    await own.click()
    assert await totals(page).all_text_contents() == before  # nothing was decided
    await asked.get_by_role("radio", name="None of these").check()
    await expect(totals(page).filter(has_text="none of the options")).to_have_count(1)
    await own.check()
    await expect(totals(page)).to_have_text(before)
    await asked.get_by_role("radio", name="None of these").check()
    await asked.get_by_role("combobox").press_sequentially("bellaco")
    await asked.get_by_role("option", name="El Bellaco").click()
    await expect(rows.first).to_contain_text("320580044")
    await expect(rows.first).to_contain_text("chosen")
    assert (await saved(page))[1] == ("chosen", "320580044")


async def test_rows_without_a_key_are_saved_alone_and_keys_copied(page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await match(page, PASTED)
    await question(page, "Row 4").get_by_role("radio", name="Ninguno (0003)").check()
    content = (await downloaded(page, "Only rows without a key (CSV)"))[1]
    assert [row["Folio"] for row in rows_in(content)] == ["011", "012"]
    await press(page, "Copy keys")
    await expect(page.locator("#decided")).to_have_text("Copied: paste beside the first row.")
    lines = (await page.evaluate("() => navigator.clipboard.readText()")).splitlines()
    assert lines[0].split("\t") == ["exact", '="010010001"', "Aguascalientes, Municipio 001, Aguascalientes"]
    assert [line.split("\t")[0] for line in lines] == ["exact", "sure", "chosen", "chosen", "none", "problem"]


async def test_municipios_are_decided_to_the_end(page: Page) -> None:
    rows = "municipio,estado\nMunicipio 1 Norte,Ags.\nXyzzy,Ags.\nMunicipio 001,Ags.\n"
    await page.get_by_label("Or paste a list").fill(rows)
    await expect(page.locator("[name=field][value=viviendas]")).to_be_disabled()
    for name in ("poblacion", "localidades"):
        await page.locator(f"[name=field][value={name}]").check()
    await match(page, rows)
    asked = page.locator(".question").first
    link = asked.get_by_role("link").first
    assert "/municipios/" in (await link.get_attribute("href") or "")
    await expect(asked.locator(".people").first).to_have_text("12 localities")
    row = page.locator("#unfound").get_by_role("row", name="Xyzzy")
    await row.get_by_role("combobox").press_sequentially("municipio 002")
    await row.get_by_role("option", name="Municipio 002").first.click()
    totals = await saved(page, "outcome", "cvegeo", "poblacion", "localidades")
    assert totals[1:] == [("chosen", "01002", "", "1"), ("exact", "01001", "863893", "12")]
