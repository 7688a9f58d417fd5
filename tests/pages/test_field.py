"""The field for forms, `<localidad-field>`, on pages of another origin with a strict Content-Security-Policy."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from localidades_api.html.static_files import STATIC
from tests.support.browser import SCREENSHOTS, axe_faults, hold, visit
from tests.support.http_server import Request, Response, http_server
from tests.support.wire import ROOT

TELEPHONE = {"width": 390, "height": 844}
NANDU, NANDU_LABEL = "010010006", "Peñón Ñandú  Doble, Municipio 001, Aguascalientes"
PLAIN = '<label for="place">Localidad</label> <localidad-field id="place" name="localidad"></localidad-field>'
LAST = '<button name="boton" value="guardar">Guardar</button>'


@pytest.fixture(scope="module")
def forms(two_releases: str) -> Iterator[str]:
    """Yield the address of a site whose page has the form that the query of its URL says."""
    policy = (
        f"default-src 'none'; script-src 'self' {two_releases}; connect-src 'self' {two_releases}; form-action 'self';"
        " require-trusted-types-for 'script'"
    )

    def respond(request: Request) -> Response:
        if request.target.startswith("/bundle/"):
            script = (STATIC / request.target.removeprefix("/bundle/")).read_bytes()
            return Response(script, headers={"Content-Type": "text/javascript"})
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        folder = query.get("from", f"{two_releases}/static")
        document = f"""<!doctype html><html lang="{query.get("lang", "es")}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Forma</title>
<script type="module" src="{folder}/{query.get("script", "localidad-field.js")}"></script>
<main><h1>Forma</h1>
<form action="/saved">{query.get("fields", html.escape(request.target))}{LAST}</form></main>"""
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy}
        return Response(document.encode(), headers=headers)

    with http_server(respond) as address:
        yield address


@pytest.fixture
async def page(browser: Browser, forms: str, two_releases: str) -> AsyncIterator[Page]:
    """Yield a page of the other site."""
    async with visit(browser, forms, service=two_releases) as page:
        yield page


async def open_form(page: Page, fields: str = PLAIN, **query: str) -> Locator:
    """Open a page with a form; return its field, as assistive technology sees it."""
    await page.goto(f"/form?{urlencode({'fields': fields, **query})}")
    return page.get_by_role("combobox").last


async def sent(page: Page) -> dict[str, str]:
    """Return what the form would send."""
    return dict(await page.evaluate("() => [...new FormData(document.forms[0])]"))


async def is_valid(page: Page) -> bool:
    return bool(await page.evaluate("document.forms[0].checkValidity()"))


async def message(page: Page) -> str:
    """Return why the field is invalid."""
    return str(await page.evaluate("document.querySelector('localidad-field').validationMessage"))


# -- Choosing


async def test_place_is_chosen_by_keyboard_and_its_key_is_sent(page: Page, forms: str) -> None:
    field = await open_form(page)
    await expect(field).to_have_accessible_name("Localidad")
    await field.press_sequentially("guadalajara")
    options = page.get_by_role("option")
    await expect(options).to_have_count(3)
    await expect(field).to_have_attribute("aria-expanded", "true")
    await expect(page.get_by_role("status")).to_have_text("3 lugares")
    for key, index in (("ArrowUp", 2), ("ArrowDown", 0), ("End", 2), ("Home", 0), ("ArrowUp", 2), ("ArrowUp", 1)):
        await field.press(key)
        await expect(options.nth(index)).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_role("option", selected=True)).to_have_count(1)
        await expect(field).to_have_attribute(
            "aria-activedescendant", await options.nth(index).get_attribute("id") or ""
        )
    chosen = await options.nth(1).inner_text()
    await field.press("Enter")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(chosen)
    await expect(field).to_have_attribute("aria-expanded", "false")
    place = await page.evaluate("document.querySelector('localidad-field').place")
    assert place["label"] == chosen
    await field.press("Enter")
    await expect(page).to_have_url(f"{forms}/saved?localidad={place['cvegeo']}&boton=guardar")


async def test_place_is_chosen_by_touch(browser: Browser, forms: str, two_releases: str) -> None:
    async with visit(browser, forms, service=two_releases, has_touch=True, is_mobile=True, viewport=TELEPHONE) as page:
        field = await open_form(page)
        await page.get_by_text("Localidad").tap()  # the label
        await expect(field).to_be_focused()
        await page.keyboard.type("PENON NANDU")
        option = page.get_by_role("option", name="Peñón Ñandú Doble")
        await expect(option).to_be_in_viewport()
        box = await option.bounding_box()
        assert box
        assert box["height"] >= 40
        assert await page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE["width"]
        await option.tap()
        await expect(field).to_have_value(NANDU_LABEL)
        assert await sent(page) == {"localidad": NANDU}


async def test_tab_chooses_and_escape_closes(page: Page) -> None:
    field = await open_form(page)
    await field.fill("penon nandu")
    await expect(page.get_by_role("option")).to_have_count(1)
    await field.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await expect(field).to_have_value("penon nandu")
    await field.press("ArrowDown")  # asks again
    await expect(page.get_by_role("option")).to_have_count(1)
    await field.press("ArrowDown")
    await field.press("Tab")
    await expect(page.get_by_role("button", name="Guardar")).to_be_focused()
    assert await sent(page) == {"localidad": NANDU}


async def test_key_that_is_typed_whole_chooses_its_place(page: Page, forms: str) -> None:
    for kind, key, label in (
        ("localidad,municipio,estado", NANDU, NANDU_LABEL),
        ("localidad,municipio,estado", "14002", "Tepatitlán 2, Jalisco"),
        ("estado", "14", "Jalisco"),
    ):
        field = await open_form(page, f'<localidad-field name="lugar" kind="{kind}"></localidad-field>')
        await field.press_sequentially(key)
        await field.press("Tab")  # before there is an answer
        await expect(field).to_have_value(label)
        assert await sent(page) == {"lugar": key}
    field = await open_form(page)
    await field.press_sequentially(NANDU)
    await field.press("Enter")
    await expect(page).to_have_url(f"{forms}/saved?localidad={NANDU}&boton=guardar")


async def test_key_shows_its_place_before_the_field_is_left(page: Page) -> None:
    field = await open_form(page)
    await field.fill(NANDU)
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    await expect(field).to_have_value(NANDU)
    assert await sent(page) == {"localidad": NANDU}
    await field.press("0")
    assert await sent(page) == {"localidad": ""}


async def test_suggestions_are_limited_to_an_area_and_kinds_are_said(page: Page) -> None:
    field = await open_form(page, '<localidad-field kind="localidad,municipio" estado="14"></localidad-field>')
    await field.fill("tepatitlan 1")
    options = page.get_by_role("option")
    await expect(options.first).to_have_text("Tepatitlán 1, Jalisco · municipio")
    assert all("Jalisco" in text for text in await options.all_inner_texts())
    await page.evaluate("document.querySelector('localidad-field').municipio = '14003'")
    await expect(options).to_have_count(0)
    await field.fill("penon")
    await expect(options).to_have_count(8)
    assert all("Tepatitlán 3, Jalisco" in text for text in await options.all_inner_texts())


async def test_place_outside_another_estado_is_no_longer_chosen(page: Page) -> None:
    await open_form(page, f'<localidad-field name="lugar" estado="1" value="{NANDU}"></localidad-field>')
    await expect(page.get_by_role("combobox")).to_have_value(NANDU_LABEL)
    for estado, key in (("01", NANDU), ("14", "")):
        await page.evaluate("estado => { document.querySelector('localidad-field').estado = estado }", estado)
        assert await sent(page) == {"lugar": key}


async def test_release_is_that_of_the_field(page: Page) -> None:
    fields = "".join(
        f'<localidad-field release="{release}" aria-label="{release}"></localidad-field>'
        for release in ("2020-01", "2021-01")
    )
    await open_form(page, fields)
    for release, found in (("2020-01", 1), ("2021-01", 0)):
        await page.get_by_role("combobox", name=release).fill("310030005")
        if found:
            await expect(page.get_by_role("option")).to_have_count(found)
        else:
            await expect(page.get_by_role("status").last).to_have_text("Sin resultados.")


async def test_bundled_script_asks_the_service_that_it_is_given(page: Page, two_releases: str) -> None:
    for path in ("", "/"):
        field = await open_form(
            page, f'<localidad-field service="{two_releases}{path}"></localidad-field>', **{"from": "/bundle"}
        )
        await field.fill("penon nandu")
        await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    cascade = f'<localidad-cascada service="{two_releases}" release="2020-01" value="310030005"></localidad-cascada>'
    await open_form(page, cascade, script="localidad-cascada.js", **{"from": "/bundle"})
    await expect(page.get_by_role("combobox", name="Localidad")).to_have_value("El Peñón 156, Tepatitlán 3, Yucatán")
    await expect(page.get_by_role("combobox", name="Estado")).to_have_value("31")
    field = await open_form(page, **{"from": "/bundle"})  # whose own server has no catalogue
    await field.fill("penon nandu")
    await expect(page.get_by_role("status")).to_have_text("No hay conexión con el catálogo.")


# -- In a form


async def test_field_without_a_choice_is_invalid_and_says_why(page: Page) -> None:
    field = await open_form(page, '<localidad-field name="localidad" label="Localidad" required></localidad-field>')
    await expect(field).to_have_accessible_name("Localidad")
    await expect(field).to_have_attribute("aria-required", "true")
    await page.get_by_role("button", name="Guardar").click()
    await expect(field).to_be_focused()
    assert await message(page) == "Escriba un lugar y elíjalo de la lista."
    await field.fill("penon nandu")
    assert await message(page) == "Elija un lugar de la lista."
    await page.get_by_role("option").click()
    assert (await is_valid(page), await message(page)) == (True, "")
    await field.press("Backspace")
    assert (await is_valid(page), await sent(page)) == (False, {"localidad": ""})
    await page.evaluate("document.querySelector('localidad-field').required = false")
    assert not await is_valid(page)  # it may be empty, but not half filled
    await field.fill("")
    assert await is_valid(page)


async def test_given_key_shows_its_place_and_reset_returns_to_it(page: Page) -> None:
    field = await open_form(page, f'<localidad-field name="localidad" value="{NANDU}"></localidad-field>')
    await expect(field).to_have_value(NANDU_LABEL)
    assert await sent(page) == {"localidad": NANDU}
    await field.fill("guadalajara")
    await page.get_by_role("option").first.click()
    assert await sent(page) == {"localidad": "020010001"}
    await page.evaluate("document.forms[0].reset()")
    assert await sent(page) == {"localidad": NANDU}
    await expect(field).to_have_value(NANDU_LABEL)


async def test_unknown_key_is_kept(page: Page) -> None:
    async with page.expect_response("**/suggest/**"):
        field = await open_form(page, '<localidad-field name="localidad" value="019999999"></localidad-field>')
    await expect(field).to_have_value("019999999")
    assert (await sent(page), await is_valid(page)) == ({"localidad": "019999999"}, True)


KEYS = [
    ("10010006", NANDU), (10010006, NANDU), (f" {NANDU} ", NANDU), ("14002", "14002"), ("1002", "01002"),
    ("14", "14"), ("1", "01"), ("100", ""), ("140020", ""), ("1400200", ""), ("0140020005", ""), ("14-002", ""),
    ("१४", ""), ("Jalisco", ""), ("0", "00"), ("", ""), (None, ""),
]  # fmt: skip


@pytest.mark.parametrize("element", ["field", "cascada"])
async def test_id_becomes_the_key_and_anything_else_none(page: Page, element: str) -> None:
    tag = f"localidad-{element}"
    await open_form(page, f'<{tag} name="localidad" kind="localidad,municipio,estado"></{tag}>', script=f"{tag}.js")
    found = await page.evaluate(
        """async ([tag, all]) => {
            await customElements.whenDefined(tag);
            const field = document.querySelector(tag);
            return all.map((given) => {
                field.value = given;
                return [given, field.value, field.checkValidity(), field.validity.badInput];
            });
        }""",
        [tag, [given for given, _ in KEYS]],
    )
    wrong = [bool(given) and not key for given, key in KEYS]
    assert found == [[given, key, not bad, bad] for (given, key), bad in zip(KEYS, wrong, strict=True)]


@pytest.mark.parametrize("element", ["field", "cascada"])
async def test_page_sets_an_error_of_its_own(page: Page, element: str) -> None:
    tag = f"localidad-{element}"
    await open_form(page, f'<{tag} name="localidad" required></{tag}>', script=f"{tag}.js")
    state = f"""async (error) => {{
        await customElements.whenDefined("{tag}");
        const field = document.querySelector("{tag}");
        if (error !== null) field.setCustomValidity(error);
        const {{ customError, valueMissing }} = field.validity;
        return [customError, valueMissing, field.validationMessage, field.checkValidity()];
    }}"""
    [_, _, own, _] = await page.evaluate(state)
    assert await page.evaluate(state, "No hay servicio ahí.") == [True, True, "No hay servicio ahí.", False]
    await page.evaluate(f"document.querySelector('{tag}').required = false")
    assert await page.evaluate(state) == [True, False, "No hay servicio ahí.", False]
    assert await page.evaluate(state, "") == [False, False, "", True]
    await page.evaluate(f"document.querySelector('{tag}').required = true")
    assert await page.evaluate(state) == [False, True, own, False]


# As React with `value={v} onInput=…`, and Vue with `:value` and `@input`: each event sets the property again.
CONTROL = """(tag) => {
    const field = document.querySelector(tag);
    field.addEventListener("input", () => { field.value = field.value });
}"""


async def test_key_that_is_set_after_each_letter_wipes_nothing(page: Page) -> None:
    field = await open_form(page)
    await page.evaluate(CONTROL, "localidad-field")
    await field.fill("penon nandu")
    await page.get_by_role("option").click()
    await expect(field).to_have_value(NANDU_LABEL)
    await field.press("End")
    await field.press("Backspace")
    await expect(field).to_have_value(NANDU_LABEL[:-1])
    await field.fill("")
    await field.press_sequentially("guadalajara")
    await expect(page.get_by_role("option")).to_have_count(3)
    await expect(field).to_have_value("guadalajara")
    await page.evaluate("document.forms[0].reset()")
    await expect(field).to_have_value("")


async def test_disabled_field_is_not_sent(page: Page) -> None:
    value = f'<localidad-field name="localidad" value="{NANDU}"></localidad-field>'
    field = await open_form(page, f"<fieldset disabled>{value}</fieldset>")
    await expect(field).to_be_disabled()
    assert await sent(page) == {}
    await page.evaluate("document.querySelector('fieldset').disabled = false")
    await expect(field).to_be_enabled()
    await page.evaluate("document.querySelector('localidad-field').disabled = true")
    await expect(field).to_be_disabled()


async def test_going_back_restores_what_was_chosen(page: Page) -> None:
    field = await open_form(page)
    await field.fill("penon nandu")
    await page.get_by_role("option").click()
    await page.get_by_role("button", name="Guardar").click()
    await page.wait_for_url("**/saved?**")
    await page.go_back()
    await expect(field).to_have_value(NANDU_LABEL)
    assert await sent(page) == {"localidad": NANDU}


RECORD = """() => {
    window.events = [];
    const field = document.querySelector("localidad-field");
    for (const name of ["input", "change"]) {
        document.addEventListener(name, (event) => events.push([name, event.target === field, field.value]));
    }
}"""


async def test_events_say_when_the_key_changes(page: Page) -> None:
    field = await open_form(page)
    await page.evaluate(RECORD)
    await field.fill("penon nandu")
    await page.get_by_role("option").click()
    await field.press("Backspace")
    await field.press("Tab")
    chosen = [["input", True, ""], ["input", True, NANDU], ["change", True, NANDU]]
    assert await page.evaluate("events") == [*chosen, ["input", True, ""], ["change", True, ""]]
    await page.evaluate("events.length = 0")
    await field.fill(NANDU)  # chooses
    await page.get_by_role("option").click()  # which is the same
    assert await page.evaluate("events") == chosen


# As React 19 and other frameworks do: properties, also before the script has loaded, and listeners.
RENDER = """(key) => {
    const field = document.createElement("localidad-field");
    Object.assign(field, { name: "lugar", kind: "estado,localidad", value: key, required: true, disabled: false });
    field.addEventListener("change", (event) => { window.changed = [event.target.value, event.target.place?.nombre] });
    document.forms[0].prepend(field);
}"""


@pytest.mark.parametrize("is_early", [True, False])
async def test_properties_of_a_framework_are_taken(page: Page, *, is_early: bool) -> None:
    if is_early:
        script = await hold(page, "**/localidad-field.js")
        await page.goto("/form?fields=", wait_until="commit")
        await page.wait_for_selector("form", state="attached")
        await page.evaluate(RENDER, "14")
        script.release()
    else:
        await page.goto("/form?fields=")
        await page.evaluate(RENDER, "14")
    field = page.get_by_role("combobox")
    await expect(field).to_have_value("Jalisco")
    assert await sent(page) == {"lugar": "14"}
    await page.evaluate("document.querySelector('localidad-field').value = null")
    assert (await sent(page), await is_valid(page)) == ({"lugar": ""}, False)
    await expect(field).to_have_value("")
    await field.fill("penon nandu")
    await page.get_by_role("option").click()
    assert await page.evaluate("window.changed") == [NANDU, "Peñón Ñandú  Doble"]


# As Django 5.2 writes a bound field with an error, with the widget of the guide.
DJANGO = f"""<ul class="errorlist" id="id_localidad_error"><li>No vive ahí.</li></ul><p>
<label for="id_localidad">Localidad:</label>
<localidad-field name="localidad" value="{NANDU}" required aria-invalid="true"
  aria-describedby="id_localidad_helptext id_localidad_error" id="id_localidad"></localidad-field>
<span class="helptext" id="id_localidad_helptext">Donde vive.</span></p>"""


async def test_html_of_a_django_form_is_named_and_described(page: Page) -> None:
    field = await open_form(page, DJANGO)
    await expect(field).to_have_value(NANDU_LABEL)
    await expect(field).to_have_accessible_name("Localidad:")
    cdp = await page.context.new_cdp_session(page)  # Playwright doesn't know of descriptions from outside a shadow tree
    nodes = (await cdp.send("Accessibility.getFullAXTree"))["nodes"]
    [described] = [node["description"]["value"] for node in nodes if node.get("role", {}).get("value") == "combobox"]
    assert described == "Donde vive. No vive ahí."
    await expect(field).to_have_attribute("aria-invalid", "true")


# -- Answers that are late or missing


async def test_late_suggestions_are_dropped(page: Page) -> None:
    late = await hold(page, "**/suggest/?q=guadalajara&**")
    field = await open_form(page)
    await field.fill("guadalajara")
    await late.asked()
    await field.fill("penon nandu")
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    late.release()
    await page.evaluate("new Promise((done) => setTimeout(done, 300))")  # longer than a slow response
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])


async def test_suggestions_wait_for_a_pause(page: Page) -> None:
    await page.clock.install(time=0)
    field = await open_form(page)
    await page.clock.pause_at(3600)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for typed in ("gua", "guadalajara"):
        await field.fill(typed)
        await page.clock.run_for(149)
        assert asked == []
    await page.clock.run_for(1)
    await expect(page.get_by_role("option")).to_have_count(3)
    assert len(asked) == 1


async def test_late_name_of_a_given_key_does_not_replace_what_was_typed(page: Page) -> None:
    late = await hold(page, f"**/suggest/?q={NANDU}&**")
    field = await open_form(page, f'<localidad-field name="localidad" value="{NANDU}"></localidad-field>')
    await late.asked()
    await expect(field).to_have_value(NANDU)
    await field.fill("guadalajara")
    late.release()
    await expect(page.get_by_role("option")).to_have_count(3)
    await page.evaluate("new Promise((done) => setTimeout(done, 300))")  # longer than a slow response
    await expect(field).to_have_value("guadalajara")
    assert await sent(page) == {"localidad": ""}


async def test_missing_answer_is_said(browser: Browser, forms: str, two_releases: str) -> None:
    headers = {"Access-Control-Allow-Origin": "*"}
    status: int | None = None

    async def refuse(route: Route) -> None:
        await (route.fulfill(status=status, headers=headers) if status else route.abort())

    async with visit(browser, forms, service=two_releases, errors=True) as page:
        for language, status, sentence in (  # noqa: B007  # refuse uses the status
            ("es", None, "No hay conexión con el catálogo."),
            ("en-US", None, "The catalogue can't be reached."),
            ("es-MX", 500, "El catálogo no puede responder en este momento. Intente más tarde."),
            ("en", 404, "The catalogue can't answer right now. Try again later."),
        ):
            field = await open_form(page, lang=language)
            await page.route("**/suggest/**", refuse)
            await field.fill("guadalajara")
            told = page.get_by_role("status")
            await expect(told).to_have_text(sentence)
            await expect(told).to_be_visible()
            await page.unroute("**/suggest/**")
            await field.fill("guadalajara 1")
            await expect(page.get_by_role("option").first).to_be_visible()


@pytest.mark.parametrize("times", [1, 2])
async def test_busy_service_is_asked_once_more(browser: Browser, forms: str, two_releases: str, times: int) -> None:
    left = [503] * times
    headers = {
        "Retry-After": "1",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "Retry-After",
    }

    async def refuse(route: Route) -> None:
        await (route.fulfill(status=left.pop(), headers=headers) if left else route.continue_())

    async with visit(browser, forms, service=two_releases, errors=True) as page:
        field = await open_form(page)
        await page.route("**/suggest/**", refuse)
        await field.fill("penon nandu")
        if times == 1:
            await expect(page.get_by_role("option")).to_have_count(1)
        else:
            await expect(page.get_by_role("status")).to_have_text(
                "El catálogo no puede responder en este momento. Intente más tarde."
            )
        assert left == []


async def test_busy_service_is_asked_after_ten_seconds_at_most(browser: Browser, forms: str, two_releases: str) -> None:
    headers = {
        "Retry-After": "3600",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "Retry-After",
    }
    asked: list[str] = []

    async def refuse(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=503, headers=headers)

    async with visit(browser, forms, service=two_releases, errors=True) as page:
        await page.clock.install(time=0)
        field = await open_form(page)
        await page.clock.pause_at(3600)
        await page.route("**/suggest/**", refuse)
        async with page.expect_response("**/suggest/**"):
            await field.fill("penon")
            await page.clock.run_for(150)
        for _ in range(12):  # the first may pass before the answer is read
            await page.clock.run_for(1_000)
            await asyncio.sleep(0.05)
        assert len(asked) == 2


# -- Languages and looks


async def test_field_speaks_the_language_of_its_page(page: Page) -> None:
    for language, texts in (
        ("en", ("3 places", "No results.", "Choose a place from the list.", "1 place")),
        ("es-MX", ("3 lugares", "Sin resultados.", "Elija un lugar de la lista.", "1 lugar")),
    ):
        field = await open_form(page, f'<div lang="{language}">{PLAIN}</div>', lang="fr")
        told = page.get_by_role("status")
        for typed, text in (("guadalajara", texts[0]), ("zzzzzzzz", texts[1]), ("penon nandu", texts[3])):
            await field.fill(typed)
            await expect(told).to_have_text(text)
        assert await message(page) == texts[2]


LOOKS = pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])


@pytest.mark.tail
@LOOKS
async def test_open_list_and_messages_pass_axe(
    browser: Browser, forms: str, two_releases: str, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 700}
    async with visit(browser, forms, service=two_releases, color_scheme=scheme, viewport=size) as page:
        field = await open_form(page)
        assert await axe_faults(page) == {}
        await field.fill("guadalajara")
        await expect(page.get_by_role("option")).to_have_count(3)
        await field.press("ArrowDown")
        await page.screenshot(path=SCREENSHOTS / f"field-{scheme}-{width}.png")
        assert await axe_faults(page) == {}
        await field.fill("zzzzzzzz")
        await expect(page.get_by_role("status")).to_have_text("Sin resultados.")
        await page.screenshot(path=SCREENSHOTS / f"field-none-{scheme}-{width}.png")
        assert await axe_faults(page) == {}


# -- The cascade

CASCADE = '<localidad-cascada name-municipio="mun" name-localidad="loc" required></localidad-cascada>'
NONE = {"estado": "", "mun": "", "loc": ""}


async def open_cascade(page: Page, fields: str = CASCADE, **query: str) -> tuple[Locator, Locator, Locator]:
    """Open a form with a cascade; return its three fields."""
    await open_form(page, fields, script="localidad-cascada.js", **query)
    estado, municipio = (page.get_by_role("combobox", name=name) for name in ("Estado", "Municipio"))
    await expect(estado.locator("option", has_text="Jalisco")).to_be_attached()
    return estado, municipio, page.get_by_role("combobox", name="Locali")


async def test_cascade_sends_three_keys(page: Page, forms: str) -> None:
    estado, municipio, localidad = await open_cascade(page)
    await expect(municipio).to_be_disabled()
    await expect(localidad).to_be_disabled()
    assert await sent(page) == NONE
    await estado.select_option("Jalisco")
    await municipio.select_option("Tepatitlán 2")
    await localidad.fill("penon 80")
    await expect(page.get_by_role("option", name="El Peñón 80, Tepatitlán 2, Jalisco")).to_have_count(1)
    await localidad.press("ArrowDown")
    await localidad.press("Enter")
    expected = {"estado": "14", "mun": "14002", "loc": "140020005"}
    assert (await sent(page), await is_valid(page)) == (expected, True)
    await page.get_by_role("button", name="Guardar").click()
    await expect(page).to_have_url(f"{forms}/saved?estado=14&mun=14002&loc=140020005&boton=guardar")


async def test_each_level_of_a_cascade_empties_those_below(page: Page) -> None:
    fields = CASCADE.replace("required", 'value="140020005"')
    estado, municipio, localidad = await open_cascade(page, fields)
    await expect(localidad).to_have_value("El Peñón 80, Tepatitlán 2, Jalisco")
    await expect(municipio).to_have_value("14002")
    await expect(estado).to_have_value("14")
    await municipio.select_option("Tepatitlán 3")
    assert await sent(page) == {"estado": "14", "mun": "14003", "loc": ""}
    await expect(localidad).to_have_value("")
    await estado.select_option("Yucatán")
    assert await sent(page) == {"estado": "31", "mun": "", "loc": ""}
    await expect(localidad).to_be_disabled()
    await estado.select_option("—")
    assert await sent(page) == NONE
    await page.evaluate("document.forms[0].reset()")
    assert await sent(page) == {"estado": "14", "mun": "14002", "loc": "140020005"}
    await expect(municipio).to_have_value("14002")
    await expect(localidad).to_have_value("El Peñón 80, Tepatitlán 2, Jalisco")


async def test_cascade_that_is_set_after_each_letter_keeps_what_is_typed(page: Page) -> None:
    estado, municipio, localidad = await open_cascade(page)
    await page.evaluate(CONTROL, "localidad-cascada")
    await estado.select_option("Jalisco")
    await municipio.select_option("Tepatitlán 2")
    await localidad.press_sequentially("penon 80")
    await page.get_by_role("option", name="El Peñón 80, Tepatitlán 2, Jalisco").click()
    await localidad.press("End")
    await localidad.press("Backspace")
    await expect(localidad).to_have_value("El Peñón 80, Tepatitlán 2, Jalisc")
    await expect(municipio).to_have_value("14002")
    assert await sent(page) == {"estado": "14", "mun": "14002", "loc": ""}
    await municipio.select_option("Tepatitlán 3")
    await expect(localidad).to_have_value("")  # though it had no key


async def test_cascade_takes_an_id_and_no_key_that_its_lists_lack(
    browser: Browser, forms: str, two_releases: str
) -> None:
    async with visit(browser, forms, service=two_releases, errors=True) as page:  # there is no list of an estado 99
        for value, keys, is_good in (
            ("10010006", {"estado": "01", "mun": "01001", "loc": NANDU}, True),  # an id, not Durango
            ("1001", {"estado": "01", "mun": "01001", "loc": ""}, True),
            ("99001", NONE, False),
            ("01999", {"estado": "01", "mun": "", "loc": ""}, False),
            ("1400200", NONE, False),
        ):
            await open_cascade(page, CASCADE.replace("required", f'value="{value}"'))
            await page.wait_for_load_state("networkidle")
            assert (await sent(page), await is_valid(page)) == (keys, is_good), value


async def test_lists_of_a_cascade_are_in_the_order_of_their_names(page: Page) -> None:
    async def answer(route: Route) -> None:
        found = [{"id": at, "nombre": name} for at, name in enumerate(names, 1)]
        await route.fulfill(json={"results": found}, headers={"Access-Control-Allow-Origin": "*"})

    names = ["Zapopan", "Ñuñoa", "Jalisco", "Ébano", "Nuevo", "Eduardo", "Álamos", "Oaxaca"]
    await page.route("**/api/census/estados/**", answer)
    estado, _, _ = await open_cascade(page)
    ordered = ["Álamos", "Ébano", "Eduardo", "Jalisco", "Nuevo", "Ñuñoa", "Oaxaca", "Zapopan"]
    await expect(estado.locator("option")).to_have_text(["—", *ordered])


async def test_cascade_says_what_is_missing(page: Page) -> None:
    for language, sentences in (
        ("en", ("Choose an estado.", "Choose a municipio.", "Type a place and choose it from the list.")),
        ("es", ("Elija un estado.", "Elija un municipio.", "Escriba un lugar y elíjalo de la lista.")),
    ):
        estado, municipio, localidad = await open_cascade(page, lang=language)
        for field, sentence in zip((estado, municipio, localidad), sentences, strict=True):
            await page.get_by_role("button", name="Guardar").click()
            await expect(field).to_be_focused()
            assert await page.evaluate("document.querySelector('localidad-cascada').validationMessage") == sentence
            if field != localidad:
                await field.select_option(index=1)


async def test_late_municipios_of_another_estado_are_dropped(page: Page) -> None:
    late = await hold(page, "**/municipios/?estado_id=14&**")
    estado, municipio, _ = await open_cascade(page)
    await estado.select_option("14")
    await late.asked()
    await estado.select_option("01")
    await expect(municipio.locator("option")).to_have_text(["—", "Municipio 001", "Municipio 002"])
    late.release()
    await page.evaluate("new Promise((done) => setTimeout(done, 300))")  # longer than a slow response
    await expect(municipio.locator("option")).to_have_text(["—", "Municipio 001", "Municipio 002"])


async def test_missing_list_of_a_cascade_is_said_and_asked_for_again(
    browser: Browser, forms: str, two_releases: str
) -> None:
    async with visit(browser, forms, service=two_releases, errors=True) as page:
        estado, municipio, _ = await open_cascade(page)
        await page.route("**/municipios/**", lambda route: route.abort())
        await estado.select_option("14")
        told = page.get_by_role("status").filter(has_text="No hay conexión con el catálogo.")
        await expect(told).to_be_visible()
        await page.unroute("**/municipios/**")
        await municipio.focus()
        await expect(municipio.locator("option")).to_have_count(4)
        await expect(told).to_have_count(0)


@pytest.mark.tail
@LOOKS
async def test_cascade_passes_axe(browser: Browser, forms: str, two_releases: str, scheme: str, width: int) -> None:
    size = {"width": width, "height": 700}
    async with visit(browser, forms, service=two_releases, color_scheme=scheme, viewport=size) as page:
        _, municipio, localidad = await open_cascade(page, CASCADE.replace("required", 'value="14002"'))
        await expect(municipio).to_have_value("14002")
        await localidad.fill("penon")
        await expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(8)
        await localidad.press("ArrowDown")
        await page.screenshot(path=SCREENSHOTS / f"cascade-{scheme}-{width}.png")
        assert await axe_faults(page) == {}


# -- The package


@pytest.mark.parametrize("name", ["field", "cascada"])
async def test_types_name_what_the_element_has(page: Page, name: str) -> None:
    await open_form(page, f"<localidad-{name}></localidad-{name}>", script=f"localidad-{name}.js")
    types = [(ROOT / "npm" / f"localidad-{file}.d.ts").read_text(encoding="utf-8") for file in (name, "field")]
    [own] = re.findall(r"^export class .*?\{\n(.*?)^\}", types[0], re.MULTILINE | re.DOTALL)
    [of_both] = re.findall(r"^export interface FormField \{\n(.*?)^\}", types[1], re.MULTILINE | re.DOTALL)
    declared = set(re.findall(r"^  (?:readonly |get |set )?([A-Za-z]+)[:(]", own + of_both, re.MULTILINE))
    prototype = f"Object.getOwnPropertyNames(customElements.get('localidad-{name}').prototype)"
    has = {one for one in await page.evaluate(prototype) if not one.endswith("Callback")}
    assert declared == has - {"constructor"}
