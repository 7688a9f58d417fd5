"""The page that matches a pasted list or a file, in Chromium."""

import asyncio
import csv
import io
import re
from pathlib import Path

import openpyxl
import pytest
from openpyxl.styles import Font
from playwright.async_api import Browser, FilePayload, Locator, Page, Route, expect

from tests.pages.conftest import PAGE
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, hold, visit

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


async def match(page: Page, text: str) -> None:
    """Paste a list and match it."""
    await page.get_by_label("Or paste a list").fill(text)
    await page.get_by_role("button", name="Add keys").click()
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()


async def downloaded(page: Page, button: str = "Download CSV") -> tuple[str, bytes]:
    """Download the file; return its name and its bytes."""
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name=button).click()
    download = await downloading.value
    return download.suggested_filename, await asyncio.to_thread(Path(await download.path()).read_bytes)


def table_in(content: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter))


def totals(page: Page) -> Locator:
    return page.locator("#totals li")


def question(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name)


def file_of(name: str, content: bytes) -> list[FilePayload]:
    return [{"name": name, "mimeType": "text/csv", "buffer": content}]


async def test_pasted_cells_are_matched_and_counted_by_outcome(page: Page) -> None:
    await match(page, PASTED)
    await expect(totals(page)).to_have_text(
        ["1 identical", "1 with small differences", "2 to decide", "1 not found", "1 unreadable"]
    )
    await expect(page.locator("#progress")).to_have_text("Rows done: 6")
    unfound = page.get_by_role("region", name="Not found or unreadable").get_by_role("row")
    await expect(unfound).to_have_text(
        [
            "RowWhat it saysReason",
            '6Xyzzy, "qwert"No place is like it.Search for another place',
            "7Municipio 001, Ags.Its nombre is empty, and it has no key to go by.Search for another place",
        ]
    )
    certain = page.get_by_text("Matched with certainty")
    await expect(page.get_by_role("link", name="010020001")).to_be_hidden()
    await certain.click()
    await expect(page.get_by_role("link", name="010020001")).to_be_visible()
    await expect(page.locator("#found").get_by_role("row", name="Asientoz")).to_contain_text(
        "spelling: the row says asientoz, the catalogue says asientos"
    )


async def test_scripts_of_the_result_load_when_something_is_given(page: Page) -> None:
    loaded = """() => performance.getEntriesByType("resource").map(({ name }) => name.match(/(\\w+)\\.js$/)?.[1])"""
    await page.goto(PAGE)
    late = {"match_result", "match_answers", "match_map", "map_style", "match_steps", "match_sentences", "workbook"}
    early = set(await page.evaluate(loaded))
    assert "match_source" in early
    assert not late & early
    async with page.expect_response("**/map_style.js"):
        await page.get_by_label("Or paste a list").fill("Aguascalientes")  # not sent yet
    await match(page, PASTED)
    assert late - {"workbook"} <= set(await page.evaluate(loaded))
    assert "workbook" not in await page.evaluate(loaded)


async def test_choice_applies_to_every_equal_row_of_the_file(page: Page) -> None:
    await match(page, PASTED)
    ninguno = question(page, "Row 4: Ninguno, Municipio 001, Ags. (applies to 2 rows)")
    await expect(ninguno).to_be_visible()
    decided = page.locator("#decided")
    await expect(decided).to_have_text("Decided: 0 of 1")
    may_leave = "() => window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert await page.evaluate(may_leave)
    await ninguno.get_by_role("radio", name="Ninguno (0003), Municipio 001, Aguascalientes").check()
    await expect(decided).to_have_text("Decided: 1 of 1")
    assert not await page.evaluate(may_leave)
    name, content = await downloaded(page)
    assert await page.evaluate(may_leave)
    assert name == "localidades-match.csv"
    assert content.startswith(b"\xef\xbb\xbfFolio,Localidad,Mpio.,Entidad,match_outcome,match_cvegeo,")
    rows = table_in(content)
    assert [(row["Folio"], row["match_outcome"], row["match_cvegeo"]) for row in rows] == [
        ("007", "exact", "010010001"),
        ("008", "sure", "010020001"),
        ("009", "chosen", "010010003"),
        ("010", "chosen", "010010003"),
        ("011", "none", ""),
        ("012", "problem", ""),
    ]
    assert rows[2]["match_label"] == "Ninguno (0003), Municipio 001, Aguascalientes"
    assert rows[1]["match_faults"].startswith("spelling: asientoz → asientos")
    assert rows[4]["Localidad"] == 'Xyzzy, "qwert"'
    async with page.expect_request("**/match/?*format=xlsx*") as asking:
        name, content = await downloaded(page, "Download Excel")
    assert "release=2020-01" in (await asking.value).url  # of the answers, although another may be published since
    assert name == "localidades-match.xlsx"
    saved = rows_in(content)
    cells = ("Folio", "match_outcome", "match_cvegeo")
    assert [[row[cell] for cell in cells] for row in saved] == [[row[cell] for cell in cells] for row in rows]


async def test_rejecting_all_candidates_is_kept_when_matched_again(page: Page) -> None:
    await match(page, PASTED)
    await question(page, "Row 4").get_by_role("radio").first.focus()
    await page.keyboard.press("ArrowUp")  # from the first to the last
    none = question(page, "Row 4").get_by_role("radio", name="None of these")
    await expect(none).to_be_checked()
    await match(page, f"{PASTED}013\tAsientos\t\t\n")
    await expect(none).to_be_checked()
    rows = table_in((await downloaded(page))[1])
    assert [(row["match_outcome"], row["match_cvegeo"]) for row in rows[2:4]] == [("none", ""), ("none", "")]
    assert len(rows) == 7


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252"])
async def test_saved_file_adds_the_answer_columns_only(page: Page, encoding: str) -> None:
    lines = ["Población;Nº;2020", "Peñón Ñandú Doble;1;a", '"Ninguno";2;"b;c"', "Ninguno;3;"]
    await page.get_by_label("Choose a file").set_input_files(
        file_of("Mi lista.csv", "\r\n".join([*lines, ""]).encode(encoding))
    )
    await page.get_by_label("Población", exact=True).select_option("Name")
    await page.get_by_role("button", name="Add keys").click()
    await question(page, "Row 3: Ninguno").get_by_role("radio", name="Ninguno (0002)").check()
    name, content = await downloaded(page)
    assert name == "Mi lista-match.csv"
    assert content.startswith(b"\xef\xbb\xbf") == (encoding != "utf-8")
    written = content.decode("utf-8-sig").splitlines()
    assert all(line.startswith(f"{sent};") for sent, line in zip(lines[:2], written, strict=False))
    assert [row["2020"] for row in table_in(content, ";")] == ["a", "b;c", ""]
    assert [row["match_outcome"] for row in table_in(content, ";")] == ["exact", "chosen", "chosen"]


async def test_changed_file_must_be_chosen_again(browser: Browser, base: str, tmp_path: Path) -> None:
    file = tmp_path / "places.csv"
    file.write_text("Localidad\nAsientos\n")
    async with visit(browser, base, errors=True) as page:
        await page.goto(PAGE)
        await page.get_by_label("Choose a file").set_input_files(file)
        file.write_text("Localidad\nAsientos\nTepetates\n")
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.get_by_role("alert")).to_have_text(
            "The file has changed since you chose it: choose it again."
        )
        await page.get_by_label("Choose a file").set_input_files(file)
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.locator("#progress")).to_have_text("Rows done: 2")


async def test_list_without_a_header_is_matched(page: Page) -> None:
    await page.goto(f"{PAGE}&release=2020-01")
    async with page.expect_request("**/match/?*") as asking:
        await match(page, "Asientos\nNinguno\nEl Bellaco\n")
    assert "release=2020-01" in (await asking.value).url
    await expect(page.get_by_label("The first row is a place, not a header")).to_be_checked()
    await expect(page.locator("#progress")).to_have_text("Rows done: 3")
    rows = table_in((await downloaded(page))[1])
    assert [row["nombre"] for row in rows] == ["Asientos", "Ninguno", "El Bellaco"]


async def test_sep_line_is_skipped(page: Page) -> None:
    await match(page, "sep=;\nLugar;Folio, clave\nAsientos;1, 2\n")
    await expect(page.get_by_label("The first row is a place, not a header")).not_to_be_checked()
    await expect(page.locator("#progress")).to_have_text("Rows done: 1")
    (row,) = table_in((await downloaded(page))[1])
    assert (row["Lugar"], row["Folio, clave"]) == ("Asientos", "1, 2")


async def test_columns_of_a_list_without_a_header_can_be_changed(page: Page) -> None:
    await page.get_by_label("Or paste a list").fill("Ags.\tAsientos\nZac.\tEl Bellaco [Rancho]\n")
    await page.get_by_label("The first row is a place, not a header").check()
    await expect(page.locator("#summary")).to_have_text("2 rows. Name · Municipio")
    await page.get_by_label("Column 2").select_option("Name")
    await expect(page.locator("#summary")).to_have_text("2 rows. Name")
    await page.get_by_label("Column 1").select_option("Estado")
    await expect(page.locator("#summary")).to_have_text("2 rows. Name · Estado")
    await page.get_by_role("button", name="Add keys").click()
    await expect(page.locator("#progress")).to_have_text("Rows done: 2")
    rows = table_in((await downloaded(page))[1])
    assert [(row["estado"], row["nombre"], row["match_cvegeo"]) for row in rows] == [
        ("Ags.", "Asientos", "010020001"),
        ("Zac.", "El Bellaco [Rancho]", "320580044"),
    ]


async def test_unreadable_file_shows_the_services_message(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True) as page:
        await page.goto(PAGE)
        text = "Sitio\tA\tB\tC\nAsientos\t1\t2\t3\n"
        await page.get_by_label("Or paste a list").fill(text)
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.get_by_role("alert")).to_contain_text("The column with the name of the place was not recogn")
        await expect(page.get_by_label("Or paste a list")).to_have_value(text)
        await page.get_by_label("Sitio", exact=True).select_option("Name")
        await page.get_by_role("button", name="Add keys").click()
        await expect(totals(page)).to_have_text("1 to decide")
        await expect(page.get_by_role("alert")).to_be_empty()


async def test_layout_is_stable_when_rows_are_pasted_or_dropped(page: Page) -> None:
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
    dropped = await page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            const text = "Localidad,Mpio,Estado\\nAsientos,Municipio 002,Ags.\\n";
            transfer.items.add(new File([text], "dropped.csv", {type: "text/csv"}));
            return transfer;
        }"""
    )
    await page.dispatch_event("#rows", "drop", {"dataTransfer": dropped})
    await button.click()
    await expect(page.locator("#progress")).to_have_text("Rows done: 1")
    await expect(totals(page).first).to_have_text("1 identical")


async def test_unreachable_service_can_be_retried_without_loss(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True) as page:
        await page.goto(PAGE)
        await page.route(RESOURCE, lambda route: route.abort())
        await page.get_by_label("Or paste a list").fill(PASTED)
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.get_by_role("alert")).to_contain_text("can’t be reached")
        await page.unroute_all()
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.locator("#progress")).to_have_text("Rows done: 6")


async def test_matching_can_be_stopped(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True) as page:
        await page.goto(PAGE)
        asked = asyncio.Event()

        async def hold(route: Route) -> None:  # noqa: ARG001  # it never answers
            asked.set()

        await page.route(RESOURCE, hold)
        await page.get_by_label("Or paste a list").fill(PASTED)
        await page.get_by_role("button", name="Add keys").click()
        await asked.wait()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#progress")).to_have_text("Stopped.")
        await expect(page.get_by_role("button", name="Add keys")).to_be_enabled()


async def test_button_is_beside_the_pasted_list_and_wants_one(page: Page) -> None:
    pasted, button = page.get_by_label("Or paste a list"), page.get_by_role("button", name="Add keys")
    below = await pasted.bounding_box(), await button.bounding_box()
    assert below[0]
    assert below[1]
    assert 0 < below[1]["y"] - below[0]["y"] - below[0]["height"] < 80
    await button.click()
    await expect(pasted).to_be_focused()
    assert await pasted.evaluate("(area) => area.validity.valueMissing")
    await pasted.fill("Aguascalientes")
    await page.get_by_label("Minimum certainty").scroll_into_view_if_needed()
    await expect(button).to_be_in_viewport()
    await button.click()
    await expect(totals(page)).to_have_text("1 to decide")


async def test_example_is_matched_by_a_click(page: Page) -> None:
    await page.get_by_role("button", name="Try an example").click()
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()
    rows = (await page.get_by_label("Or paste a list").input_value()).splitlines()[1:]
    await expect(page.locator("#progress")).to_have_text(f"Rows done: {len(rows)}")
    await expect(page.get_by_role("progressbar")).to_be_hidden()
    told = await totals(page).all_text_contents()
    assert sum(int(part.split(" ")[0]) for part in told) == len(rows)
    assert await page.locator("#shares span").count() == len(told)


async def test_candidates_show_their_population_and_none_of_these_searches(page: Page) -> None:
    await match(page, PASTED)
    asked = question(page, "Row 4")
    await expect(asked.locator(".choice").first).to_contain_text("rural · population without data")
    search = asked.locator("input[type=search]")
    await expect(search).to_be_hidden()
    await asked.get_by_role("radio", name="None of these").check()
    await search.press_sequentially("bellaco")
    await page.get_by_role("option", name="El Bellaco").click()
    await expect(search).to_have_value(re.compile("El Bellaco"))
    rows = table_in((await downloaded(page))[1])
    assert [(row["match_outcome"], row["match_cvegeo"]) for row in rows[2:4]] == [("chosen", "320580044")] * 2
    assert "El Bellaco" in rows[2]["match_label"]
    await asked.get_by_role("radio").first.check()
    await expect(search).to_be_hidden()


async def test_unmatched_rows_are_searched_and_chosen_together(page: Page) -> None:
    await match(page, f"{PASTED}013\tXyzzy, ...\t\t\n014\tXyzzy, ...\t\t\n")
    decided = page.locator("#decided")
    await expect(decided).to_have_text("Decided: 0 of 1")
    for text in ("Xyzzy, ... (applies to 2 rows)", "Its nombre is empty"):
        row = page.locator("#unfound").get_by_role("row", name=text)
        search = row.get_by_role("combobox", name="Search for another place")
        await search.press_sequentially("bellaco")
        await row.get_by_role("option", name="El Bellaco").click()
        await expect(search).to_have_value(re.compile("El Bellaco"))
    await expect(decided).to_have_text("Decided: 0 of 1")
    cells = ("Folio", "match_outcome", "match_cvegeo", "match_problem")
    for button in ("Download CSV", "Download Excel"):
        found = rows_in((await downloaded(page, button))[1])
        assert [tuple(row[name] or "" for name in cells) for row in found[4:]] == [
            ("011", "none", "", ""),
            ("012", "chosen", "320580044", ""),
            ("013", "chosen", "320580044", ""),
            ("014", "chosen", "320580044", ""),
        ]
    await match(page, f"{PASTED}013\tXyzzy, ...\t\t\n")  # the choice is kept until its text changes
    await expect(search).to_have_value(re.compile("El Bellaco"))
    await search.fill("")
    found = rows_in((await downloaded(page))[1])
    assert [row["match_outcome"] for row in found[5:]] == ["problem", "chosen"]


def rows_in(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a downloaded CSV file or workbook."""
    if not content.startswith(b"PK"):
        return table_in(content)
    header, *rows = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    return [
        dict(zip(map(str, header), map(str, ("" if cell is None else cell for cell in row)), strict=True))
        for row in rows
    ]


async def test_spanish_page_saves_spanish_files(browser: Browser, base: str) -> None:
    async with visit(browser, base, accept_downloads=True, viewport=TELEPHONE) as page:
        await page.goto(f"{PAGE}&lang=es")
        await page.get_by_label("O pegue una lista").fill(PASTED.replace("010\tNinguno", "010\tXyzzy"))
        await page.get_by_role("button", name="Asignar claves").click()
        await question(page, "Fila 4").get_by_role("radio", name="Ninguno (0003)").check()
        row = page.locator("#unfound").get_by_role("row", name="Xyzzy, Municipio 001")
        await row.get_by_role("combobox", name="Buscar").press_sequentially("bellaco")
        await expect(row.get_by_role("option", name="El Bellaco")).to_be_visible()
        assert await page.evaluate("() => document.documentElement.scrollWidth") <= TELEPHONE["width"]
        await row.get_by_role("option", name="El Bellaco").click()
        for button in ("Descargar CSV", "Descargar Excel"):
            name, content = await downloaded(page, button)
            assert name.startswith("localidades-claves.")
            found = rows_in(content)
            outcomes = ["idéntica", "con diferencias menores", "elegida", "elegida", "no encontrada", "ilegible"]
            assert [row["Resultado"] for row in found] == outcomes
            assert found[1]["Diferencias"].startswith("ortografía: asientoz → asientos")
            assert found[5]["Observación"] == "La fila no tiene “nombre” ni clave."
        await page.get_by_text("Hacerlo desde la terminal").click()
        await expect(page.locator("#curl")).to_contain_text("/api/census/localidades/match/?lang=es'")


async def test_many_rows_are_drawn_a_hundred_at_a_time(page: Page) -> None:
    lines = ["nombre,municipio", *(f"Ninguno {number},Municipio 001" for number in range(2_000))]
    await page.get_by_label("Choose a file").set_input_files(file_of("many.csv", "\n".join(lines).encode()))
    await page.get_by_role("button", name="Add keys").click()
    await expect(page.locator("#progress")).to_have_text("Rows done: 2,000")
    drawn = page.locator("#decide fieldset, #unfound tbody tr, #found tbody tr")
    before = await drawn.count()
    assert 0 < before <= 300
    await page.get_by_role("button", name="Show more").first.click()
    assert before < await drawn.count() <= before + 100


async def test_chosen_release_and_certainty_are_used(page: Page) -> None:
    await page.goto("/match?format=api&release=2020-01")
    await page.get_by_label("Or paste a list").fill(PASTED)
    slider = page.get_by_label("Minimum certainty")
    await slider.press("ArrowRight")
    await expect(page.locator("#sure-shown")).to_have_text("97.5 %")
    for certain, asked in (("97.5", "sure=0.975"), ("80", "sure=0.8"), ("99.5", "sure=0.995")):
        await slider.fill(certain)
        async with page.expect_request("**/match/?*") as asking:
            await match(page, PASTED)
        assert {"release=2020-01", asked} <= set((await asking.value).url.partition("?")[2].split("&"))


async def test_spanish_result_is_translated_and_passes_axe(browser: Browser, base: str) -> None:
    async with visit(browser, base, color_scheme="light") as page:
        await page.goto("/api/census/?format=api&lang=es")
        await page.get_by_role("link", name="Asignar claves").last.click()
        await page.get_by_label("O pegue una lista").fill(PASTED)
        await page.get_by_role("button", name="Asignar claves").click()
        await expect(page.locator("#progress")).to_have_text("Filas procesadas: 6")
        await expect(totals(page)).to_have_text(
            ["1 idéntica", "1 con diferencias menores", "2 por decidir", "1 no encontrada", "1 ilegible"]
        )
        await page.get_by_text("Encontradas con certeza").click()
        await expect(page.locator("#found").get_by_role("row", name="Asientoz")).to_contain_text(
            "ortografía: se escribió asientoz, el catálogo dice asientos"
        )
        assert await axe_faults(page) == {}
        await page.emulate_media(color_scheme="dark")
        await page.screenshot(path=SCREENSHOTS / "match-in-use-dark.png", full_page=True)
        assert await axe_faults(page, runOnly=["color-contrast"]) == {}
        await page.set_viewport_size(TELEPHONE)
        assert await page.evaluate("() => document.documentElement.scrollWidth") <= TELEPHONE["width"]
        await page.screenshot(path=SCREENSHOTS / "match-in-use-telephone.png", full_page=True)
        above = """(fieldsets) => fieldsets.filter((one) => {
            const [box, legend] = [one, one.querySelector("legend")].map((part) => part.getBoundingClientRect());
            return legend.top < box.top + 1 || legend.right > box.right;
        }).length"""
        fieldsets = page.locator("fieldset:visible")
        assert await fieldsets.count() == 2
        assert await fieldsets.evaluate_all(above) == 0


async def test_problems_of_files_and_rows_are_in_spanish(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True) as page:
        await page.goto(f"{PAGE}&lang=es")
        for name, content, sentence in (
            ("list.xlsx", b"PK\x03\x04", "No se puede leer el libro de Excel: guárdelo como .xlsx, sin contraseña"),
            (
                "list.csv",
                b"PK\x03\x04 a workbook",
                "No se puede leer el libro de Excel: guárdelo como .xlsx, sin contraseña",
            ),
            (
                "list.csv",
                b"a,b,c,d\n1,2,3,4\n",
                "No se reconoció la columna con el nombre del lugar. Elija abajo qué contiene cada columna.",
            ),
            ("list.csv", b'Localidad,x\nNinguno,"open\n', "En la línea 2 se abren comillas que no se cierran"),
        ):
            await page.get_by_label("Elegir archivo").set_input_files(file_of(name, content))
            await page.get_by_role("button", name="Asignar claves").click()
            await expect(page.get_by_role("alert")).to_contain_text(sentence)
        await page.get_by_label("Elegir archivo").set_input_files(
            file_of("list.csv", b"Localidad,lat,lon\n,95,1\nNinguno,1,2,3\n")
        )
        await page.get_by_role("button", name="Asignar claves").click()
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


# Excel workbooks


def workbook_of(*rows: tuple[object, ...]) -> list[FilePayload]:
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    workbook.worksheets[0].append(["Visitas"])
    sheet = workbook.create_sheet("Lugares & más")
    for row in rows:
        sheet.append([*row])
    sheet["A1"].font = Font(bold=True)
    workbook.save(file)
    return [{"name": "Mis visitas.xlsx", "mimeType": "", "buffer": file.getvalue()}]


async def test_workbook_is_matched_and_saved_with_choices_and_formats(page: Page) -> None:
    places = workbook_of(
        ("Localidad", "CVE_ENT", "Folio"),
        ("Aguascalientes", 1, 7), ("Ninguno", 1, 8), (), ("Ninguno", 1, 9), ("Xyzzy", 1, 10), ("Ojo <&> de", 1, 11),
    )  # fmt: skip
    await page.get_by_label("Choose a file").set_input_files(places)
    await expect(page.get_by_label("Sheet")).to_have_value("Lugares & más")
    await page.get_by_role("button", name="Add keys").click()
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()
    asked = question(page, "Row 3: Ninguno, 01 (applies to 2 rows)")
    await asked.get_by_role("radio", name="Ninguno (0003)").check()
    await page.screenshot(path=SCREENSHOTS / "match-workbook.png", full_page=True)
    name, content = await downloaded(page, "Download Excel")
    assert name == "Mis visitas-match.xlsx"
    workbook = openpyxl.load_workbook(io.BytesIO(content))
    sheet = workbook["Lugares & más"]
    header, *rows = sheet.iter_rows(values_only=True)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["Folio"], row["match_outcome"], row["match_cvegeo"]) for row in found[:5]] == [
        (7, "exact", "010010001"),
        (8, "chosen", "010010003"),
        (None, None, None),
        (9, "chosen", "010010003"),
        (10, "none", None),
    ]
    assert isinstance(found[1]["match_score"], float)
    assert found[1]["match_candidates"]
    assert found[5]["Localidad"] == "Ojo <&> de"
    assert sheet["A1"].font.bold
    assert workbook["Sheet"]["A1"].value == "Visitas"


async def test_saved_workbook_is_rematched_and_saved_without_the_service(page: Page) -> None:
    places = workbook_of(("Localidad", "CVE_ENT"), ("Ninguno", 1), ("Aguascalientes", 1), ("Xyzzy", 1))
    for chosen, again in (("Ninguno (0002)", ""), ("Ninguno (0003)", "2")):
        await page.get_by_label("Choose a file").set_input_files(places)
        await page.get_by_role("button", name="Add keys").click()
        await expect(page.get_by_role("heading", name="Result")).to_be_focused()
        await question(page, "Row 2").get_by_role("radio", name=chosen).check()
        await page.route(RESOURCE, lambda route: route.abort())
        content = (await downloaded(page, "Download Excel"))[1]
        await page.unroute(RESOURCE)
        header, *rows = openpyxl.load_workbook(io.BytesIO(content))["Lugares & más"].iter_rows(values_only=True)
        found = [dict(zip(header, row, strict=True)) for row in rows]
        assert [row[f"match{again}_outcome"] for row in found] == ["chosen", "exact", "none"]
        assert found[0]["match_label"] == "Ninguno (0002), Municipio 001, Aguascalientes"
        assert found[0][f"match{again}_label"] == f"{chosen}, Municipio 001, Aguascalientes"
        places = [{"name": "again.xlsx", "mimeType": "", "buffer": content}]


async def test_spanish_files_are_rematched_and_saved_with_the_last_choices(browser: Browser, base: str) -> None:
    async with visit(browser, base, accept_downloads=True) as page:
        await page.goto(f"{PAGE}&lang=es")
        file, book = io.BytesIO(), openpyxl.Workbook()
        rows = [("Resultado",), ("Localidad", "CVE_ENT", "Lugar"), ("Ninguno", 1, "x"), ("Aguascalientes", 1)]
        for row in rows:
            book.worksheets[0].append([*row])
        book.save(file)
        workbook: FilePayload = {"name": "a.xlsx", "mimeType": "", "buffer": file.getvalue()}
        text: FilePayload = {"name": "a.csv", "mimeType": "", "buffer": b"Localidad;CVE_ENT;Lugar\nNinguno;01;x\n"}
        for sent, button in ((workbook, "Descargar Excel"), (text, "Descargar CSV")):
            for chosen, again in (("Ninguno (0002)", ""), ("Ninguno (0003)", " (2)")):
                await page.get_by_label("Elegir archivo").set_input_files([sent])
                await page.get_by_role("button", name="Asignar claves").click()
                await expect(page.get_by_role("heading", name="Resultado")).to_be_focused()
                await question(page, "Ninguno").get_by_role("radio", name=chosen).check()
                content = (await downloaded(page, button))[1]
                sent["buffer"] = content
                if sent is workbook:
                    _, header, first, *_ = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].values
                    found = dict(zip(header, first, strict=True))
                else:
                    found = {**next(csv.DictReader(io.StringIO(content.decode()), delimiter=";"))}
                number = " (3)" if again else " (2)"
                assert found[f"Resultado{again}"] == "elegida"
                assert found[f"Lugar{number}"] == f"{chosen}, Municipio 001, Aguascalientes"
                assert (found["Lugar"], found["Resultado"]) == ("x", "elegida")
                assert found["Lugar (2)"] == "Ninguno (0002), Municipio 001, Aguascalientes"


async def test_unrecognized_columns_of_a_workbook_can_be_named(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True, accept_downloads=True) as page:
        await page.goto(PAGE)
        await page.get_by_label("Choose a file").set_input_files(
            workbook_of(("sitio", "zona"), ("Asientos", "Municipio 002"))
        )
        await page.get_by_label("Sheet").select_option("Lugares & más")
        await expect(page.get_by_role("alert")).to_contain_text("The column with the name of the place was not recogn")
        await page.get_by_label("sitio", exact=True).select_option("Name")
        await page.get_by_label("zona", exact=True).select_option("Municipio")
        await page.get_by_role("button", name="Add keys").click()
        await expect(totals(page).first).to_have_text("1 identical")
        await expect(page.get_by_label("sitio", exact=True)).to_have_value("nombre")
        assert (await downloaded(page, "Download Excel"))[1].startswith(b"PK")
