"""The fields for forms, `<localidad-field>` and `<localidad-cascada>`, on pages of another origin."""

import asyncio
import html
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, Route, expect

from localidades_api.html.static_files import STATIC
from tests.support.browser import SCREENSHOTS, axe_faults, hold, visit, watched
from tests.support.http_server import Request, Response, http_server
from tests.support.machine import needed
from tests.support.wire import ROOT

NANDU, NANDU_LABEL = "010010006", "Peñón Ñandú  Doble, Municipio 001, Aguascalientes"
PENON_80 = "El Peñón 80, Tepatitlán 2, Jalisco"
PLAIN = '<label for="place">Localidad</label> <localidad-field id="place" name="localidad"></localidad-field>'
GIVEN = f'<localidad-field name="localidad" value="{NANDU}"></localidad-field>'
LAST = '<button name="boton" value="guardar">Guardar</button>'
LATE = "new Promise((done) => setTimeout(done, 300))"  # longer than a slow response


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


@pytest.fixture(scope="module")
async def context(browser: Browser, forms: str, two_releases: str) -> AsyncIterator[BrowserContext]:
    async with watched(browser, forms, service=two_releases, errors=True) as context:
        yield context


def other(browser: Browser, forms: str, service: str, **options: Any) -> AbstractAsyncContextManager[Page]:  # noqa: ANN401  # passed on
    """Open a page with options of its own."""
    return visit(browser, forms, service=service, errors=True, **options)


async def open_form(page: Page, fields: str = PLAIN, **query: str) -> Locator:
    """Open a page with a form; return its field, as assistive technology sees it."""
    await page.goto(f"/form?{urlencode({'fields': fields, **query})}")
    return page.get_by_role("combobox").last


async def sent(page: Page) -> dict[str, str]:
    """Return what the form would send."""
    return dict(await page.evaluate("() => [...new FormData(document.forms[0])]"))


async def of_field(page: Page, expression: str, tag: str = "localidad-field") -> Any:  # noqa: ANN401  # of JavaScript
    """Return a property or what a call returns, or set a property."""
    return await page.evaluate(f"document.querySelector('{tag}').{expression}")


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
        active = await options.nth(index).get_attribute("id") or ""
        await expect(field).to_have_attribute("aria-activedescendant", active)
    chosen = await options.nth(1).inner_text()
    await field.press("Enter")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(chosen)
    await expect(field).to_have_attribute("aria-expanded", "false")
    place = await of_field(page, "place")
    assert place["label"] == chosen
    await field.press("Enter")
    await expect(page).to_have_url(f"{forms}/saved?localidad={place['cvegeo']}&boton=guardar")
    await page.go_back()
    await expect(field).to_have_value(chosen)
    assert await sent(page) == {"localidad": place["cvegeo"]}


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
        ("localidad,municipio,estado", "14002", "Tepatitlán 2, Jalisco"),
        ("estado", "14", "Jalisco"),
    ):
        field = await open_form(page, f'<localidad-field name="lugar" kind="{kind}"></localidad-field>')
        await field.press_sequentially(key)
        await field.press("Tab")  # before there is an answer
        await expect(field).to_have_value(label)
        assert await sent(page) == {"lugar": key}
    field = await open_form(page)
    await field.fill(NANDU)
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    await expect(field).to_have_value(NANDU)
    assert await sent(page) == {"localidad": NANDU}
    await field.press("0")
    assert await sent(page) == {"localidad": ""}
    await field.fill(NANDU)
    await field.press("Enter")
    await expect(page).to_have_url(f"{forms}/saved?localidad={NANDU}&boton=guardar")


async def test_suggestions_are_limited_to_an_area_and_kinds_are_said(page: Page) -> None:
    field = await open_form(
        page, '<localidad-field name="lugar" kind="localidad,municipio" estado="14"></localidad-field>'
    )
    await field.fill("tepatitlan 1")
    options = page.get_by_role("option")
    await expect(options.first).to_have_text("Tepatitlán 1, Jalisco · municipio")
    assert all("Jalisco" in text for text in await options.all_inner_texts())
    await of_field(page, "municipio = '14003'")
    await expect(options).to_have_count(0)
    await field.fill("penon")
    await expect(options).to_have_count(8)
    assert all("Tepatitlán 3, Jalisco" in text for text in await options.all_inner_texts())
    await options.first.click()
    for area, is_inside in (("estado = '14'", True), ("municipio = '14001'", False)):
        await of_field(page, area)
        assert bool((await sent(page))["lugar"]) is is_inside


async def test_bundled_script_asks_the_service_that_it_is_given(page: Page, two_releases: str) -> None:
    bundled = {"from": "/bundle"}
    field = await open_form(page, f'<localidad-field service="{two_releases}/"></localidad-field>', **bundled)
    await field.fill("penon nandu")
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    cascade = f'<localidad-cascada service="{two_releases}" release="2020-01" value="310030005"></localidad-cascada>'
    await open_form(page, cascade, script="localidad-cascada.js", **bundled)
    await expect(page.get_by_role("combobox", name="Localidad")).to_have_value("El Peñón 156, Tepatitlán 3, Yucatán")
    await expect(page.get_by_role("combobox", name="Estado")).to_have_value("31")
    field = await open_form(page, **bundled)  # whose own server has no catalogue
    await field.fill("penon nandu")
    await expect(page.get_by_role("status")).to_have_text("No hay conexión con el catálogo.")


# -- In a form


async def test_field_without_a_choice_is_invalid_and_says_why(page: Page) -> None:
    field = await open_form(page, '<localidad-field name="localidad" label="Localidad" required></localidad-field>')
    await expect(field).to_have_accessible_name("Localidad")
    await expect(field).to_have_attribute("aria-required", "true")
    await page.get_by_role("button", name="Guardar").click()
    await expect(field).to_be_focused()
    assert await of_field(page, "validationMessage") == "Escriba un lugar y elíjalo de la lista."
    await field.fill("penon nandu")
    assert await of_field(page, "validationMessage") == "Elija un lugar de la lista."
    await page.get_by_role("option").click()
    assert (await of_field(page, "checkValidity()"), await of_field(page, "validationMessage")) == (True, "")
    await field.press("Backspace")
    assert (await of_field(page, "checkValidity()"), await sent(page)) == (False, {"localidad": ""})
    await of_field(page, "required = false")
    assert not await of_field(page, "checkValidity()")  # it may be empty, but not half filled
    await field.fill("")
    assert await of_field(page, "checkValidity()")


async def test_given_key_shows_its_place_and_reset_returns_to_it(page: Page) -> None:
    field = await open_form(page, GIVEN)
    await expect(field).to_have_value(NANDU_LABEL)
    assert await sent(page) == {"localidad": NANDU}
    await field.fill("guadalajara")
    await page.get_by_role("option").first.click()
    assert await sent(page) == {"localidad": "020010001"}
    await page.evaluate("document.forms[0].reset()")
    assert await sent(page) == {"localidad": NANDU}
    await expect(field).to_have_value(NANDU_LABEL)
    async with page.expect_response("**/suggest/**"):
        field = await open_form(page, GIVEN.replace(NANDU, "019999999"))  # which no place has
    await expect(field).to_have_value("019999999")
    assert (await sent(page), await of_field(page, "value")) == ({"localidad": "019999999"}, "019999999")
    assert await of_field(page, "validationMessage") == "El catálogo no tiene esa clave. Elija un lugar de la lista."
    await field.fill("penon nandu")
    await page.get_by_role("option").click()
    assert await of_field(page, "checkValidity()")
    await page.route("**/suggest/**", lambda route: route.abort())
    async with page.expect_event("requestfailed"):
        field = await open_form(page, GIVEN)
    await expect(field).to_have_value(NANDU)
    assert await of_field(page, "checkValidity()")  # as far as anybody can tell


KEYS = [
    ("10010006", NANDU), (10010006, NANDU), (f" {NANDU} ", NANDU), ("14002", "14002"), ("1002", "01002"),
    ("14", "14"), ("1", "01"), ("100", ""), ("140020", ""), ("1400200", ""), ("0140020005", ""), ("14-002", ""),
    ("१४", ""), ("Jalisco", ""), ("0", "00"), ("", ""), (None, ""),
]  # fmt: skip


@pytest.mark.parametrize("tag", ["localidad-field", "localidad-cascada"])
async def test_id_becomes_the_key_and_a_page_may_set_an_error_of_its_own(page: Page, tag: str) -> None:
    await open_form(page, f'<{tag} kind="localidad,municipio,estado"></{tag}>', script=f"{tag}.js")
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
    for change, expected in (
        ("setCustomValidity('No hay.')", [True, False, "No hay.", False]),
        ("required = true", [True, True, "No hay.", False]),
        ("required = false", [True, False, "No hay.", False]),
        ("setCustomValidity('')", [False, False, "", True]),
    ):
        await of_field(page, change, tag)
        state = await page.evaluate(
            """(tag) => {
                const field = document.querySelector(tag);
                const { customError, valueMissing } = field.validity;
                return [customError, valueMissing, field.validationMessage, field.checkValidity()];
            }""",
            tag,
        )
        assert state == expected, change


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
    await field.fill("guadalajara")
    await expect(page.get_by_role("option")).to_have_count(3)
    await expect(field).to_have_value("guadalajara")
    await page.evaluate("document.forms[0].reset()")
    await expect(field).to_have_value("")


async def test_field_that_is_disabled_is_not_sent_and_one_that_is_only_read_is(page: Page) -> None:
    field = await open_form(page, f"<fieldset disabled>{GIVEN}</fieldset>")
    await expect(field).to_be_disabled()
    assert await sent(page) == {}
    await page.evaluate("document.querySelector('fieldset').disabled = false")
    await expect(field).to_be_enabled()
    await of_field(page, "disabled = true")
    await expect(field).to_be_disabled()
    field = await open_form(page, GIVEN.replace("value", "readonly value"))
    await expect(field).to_have_value(NANDU_LABEL)
    await expect(field).not_to_be_editable()
    await field.press("ArrowDown")
    await page.evaluate(LATE)
    await expect(page.get_by_role("option")).to_have_count(0)
    assert (await sent(page), await of_field(page, "willValidate")) == ({"localidad": NANDU}, False)
    await of_field(page, "readOnly = false")
    await expect(field).to_be_editable()


@pytest.mark.parametrize(("room", "opens_up"), [(600, False), (60, True)])
async def test_list_lies_over_what_cuts_it_off_and_opens_where_there_is_room(
    browser: Browser, forms: str, two_releases: str, room: int, *, opens_up: bool
) -> None:
    """The field is in a low box with `overflow: hidden`, `room` pixels above the lower edge of the window."""
    async with other(browser, forms, two_releases, viewport={"width": 390, "height": 800}) as page:
        field = await open_form(page)
        await page.evaluate(
            """(room) => {
                const [form] = document.forms;
                form.style.cssText = "position: fixed; overflow: hidden; height: 5rem; transform: scale(1)";
                const { bottom } = document.querySelector("localidad-field").getBoundingClientRect();
                form.style.top = `${form.getBoundingClientRect().top + innerHeight - room - bottom}px`;
            }""",
            room,
        )
        await field.fill("penon")
        options = page.get_by_role("option")
        await expect(options).to_have_count(8)
        input_box, list_box = await field.bounding_box(), await page.get_by_role("listbox").bounding_box()
        assert input_box is not None
        assert list_box is not None
        assert (list_box["x"], list_box["width"]) == (input_box["x"], input_box["width"])
        edges = (list_box["y"] + list_box["height"], input_box["y"])
        if not opens_up:
            edges = (list_box["y"], input_box["y"] + input_box["height"])
        assert edges[0] == pytest.approx(edges[1], abs=1)
        assert list_box["y"] >= 0
        assert list_box["y"] + list_box["height"] <= 800
        chosen = await options.last.inner_text()
        await options.last.click()  # which is not cut off
        await expect(field).to_have_value(chosen)


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
RENDER = """() => {
    const field = document.createElement("localidad-field");
    Object.assign(field, { name: "lugar", kind: "estado,localidad", value: "14", required: true, disabled: false });
    field.addEventListener("change", (event) => { window.changed = [event.target.value, event.target.place?.nombre] });
    document.forms[0].prepend(field);
}"""


async def test_properties_of_a_framework_are_taken(page: Page) -> None:
    script = await hold(page, "**/localidad-field.js")
    await page.goto("/form?fields=", wait_until="commit")
    await page.wait_for_selector("form", state="attached")
    await page.evaluate(RENDER)
    script.release()
    field = page.get_by_role("combobox")
    await expect(field).to_have_value("Jalisco")
    assert await sent(page) == {"lugar": "14"}
    await of_field(page, "value = null")
    assert (await sent(page), await of_field(page, "checkValidity()")) == ({"lugar": ""}, False)
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


async def test_field_is_named_and_described_by_other_elements(page: Page) -> None:
    fields = '<b id="where">Domicilio</b> <i id="what">Localidad</i>'
    fields += '<localidad-field aria-labelledby="where what none" aria-label="Otro"></localidad-field>'
    await expect(await open_form(page, fields)).to_have_accessible_name("Domicilio Localidad")
    field = await open_form(page, DJANGO)
    await expect(field).to_have_value(NANDU_LABEL)
    await expect(field).to_have_accessible_name("Localidad:")
    cdp = await page.context.new_cdp_session(page)  # Playwright doesn't know of descriptions from outside a shadow tree
    nodes = (await cdp.send("Accessibility.getFullAXTree"))["nodes"]
    [described] = [node["description"]["value"] for node in nodes if node.get("role", {}).get("value") == "combobox"]
    assert described == "Donde vive. No vive ahí."
    await expect(field).to_have_attribute("aria-invalid", "true")


# -- Answers that are late or missing


async def test_late_answers_replace_nothing(page: Page) -> None:
    late = await hold(page, re.compile(f"/suggest/\\?q=({NANDU}|guadalajara)&"))
    field = await open_form(page, GIVEN)
    await late.asked()
    await expect(field).to_have_value(NANDU)
    await field.fill("guadalajara")
    await late.asked()
    await field.fill("penon nandu")
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    late.release()
    await page.evaluate(LATE)
    await expect(page.get_by_role("option")).to_have_text([NANDU_LABEL])
    await expect(field).to_have_value("penon nandu")
    assert await sent(page) == {"localidad": ""}


async def test_suggestions_wait_for_a_pause(browser: Browser, forms: str, two_releases: str) -> None:
    async with other(browser, forms, two_releases) as page:
        await page.clock.install(time=0)
        field = await open_form(page)
        await page.clock.pause_at(3600)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for typed in ("gua", "guadalajara"):
            await field.fill(typed)
            await page.clock.run_for(149)
            assert asked == []
            await expect(page.get_by_role("status")).to_be_empty()  # nothing has failed
        await page.clock.run_for(1)
        await expect(page.get_by_role("option")).to_have_count(3)
        assert len(asked) == 1


CROSS_ORIGIN = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}


async def test_missing_answer_is_said(page: Page) -> None:
    statuses: list[int | None] = [500, None, 404]

    async def refuse(route: Route) -> None:
        status = statuses.pop(0)
        await (route.fulfill(status=status, headers=CROSS_ORIGIN) if status else route.abort())

    field = await open_form(page, lang="en")
    await page.route("**/suggest/**", refuse)
    told = page.get_by_role("status")
    refused = "The catalogue can't answer right now. Try again later."
    for typed, sentence in (("a", refused), ("b", "The catalogue can't be reached."), ("c", refused)):
        await field.fill(typed)
        await expect(told).to_have_text(sentence)
        await expect(told).to_be_visible()
    await page.unroute("**/suggest/**")
    await field.fill("guadalajara 1")
    await expect(page.get_by_role("option").first).to_be_visible()


async def test_busy_service_is_asked_once_more_after_ten_seconds_at_most(
    browser: Browser, forms: str, two_releases: str
) -> None:
    left: list[int] = []

    async def refuse(route: Route) -> None:
        headers = CROSS_ORIGIN | {"Retry-After": "3600"}
        await (route.fulfill(status=left.pop(), headers=headers) if left else route.continue_())

    async with other(browser, forms, two_releases) as page:
        await page.clock.install(time=0)
        field = await open_form(page)
        await page.clock.pause_at(3600)
        await page.route("**/suggest/**", refuse)
        for typed, refusals, said in (
            ("penon nandu", 1, "1 lugar"),
            ("guadalajara", 2, "El catálogo no puede responder en este momento. Intente más tarde."),
        ):
            left += [503] * refusals
            async with page.expect_response("**/suggest/**"):
                await field.fill(typed)
                await page.clock.run_for(150)
            for _ in range(12):  # the first may pass before the answer is read
                await page.clock.run_for(1_000)
                await asyncio.sleep(0.05)
            await expect(page.get_by_role("status")).to_have_text(said)
            assert left == []


# -- Languages and looks


async def test_field_speaks_the_language_of_its_page(page: Page) -> None:
    for language, texts in (
        ("en", ("3 places", "No results.", "1 place", "Choose a place from the list.")),
        ("es-MX", ("3 lugares", "Sin resultados.", "1 lugar", "Elija un lugar de la lista.")),
    ):
        field = await open_form(page, f'<div lang="{language}">{PLAIN}</div>', lang="fr")
        for typed, text in zip(("guadalajara", "zzzzzzzz", "penon nandu"), texts, strict=False):
            await field.fill(typed)
            await expect(page.get_by_role("status")).to_have_text(text)
        assert await of_field(page, "validationMessage") == texts[-1]


@pytest.mark.tail
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
async def test_fields_pass_axe(browser: Browser, forms: str, two_releases: str, scheme: str, width: int) -> None:
    size = {"width": width, "height": 700}
    async with other(browser, forms, two_releases, color_scheme=scheme, viewport=size) as page:
        field = await open_form(page)
        assert await axe_faults(page) == {}
        await field.fill("guadalajara")
        await expect(page.get_by_role("option")).to_have_count(3)
        await field.press("ArrowDown")
        await page.screenshot(path=SCREENSHOTS / f"field-{scheme}-{width}.png")
        assert await axe_faults(page) == {}
        await field.fill("zzzzzzzz")
        await expect(page.get_by_role("status")).to_have_text("Sin resultados.")
        assert await axe_faults(page) == {}
        _, municipio, localidad = await open_cascade(page, CASCADE.replace("required", 'value="14002"'))
        await expect(municipio).to_have_value("14002")
        await localidad.fill("penon")
        await expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(8)
        await localidad.press("ArrowDown")
        await page.screenshot(path=SCREENSHOTS / f"cascade-{scheme}-{width}.png")
        assert await axe_faults(page) == {}


# -- The cascade

CASCADE = '<localidad-cascada name-municipio="mun" name-localidad="loc" required></localidad-cascada>'


def keys(estado: str = "", municipio: str = "", localidad: str = "") -> dict[str, str]:
    return {"estado": estado, "mun": municipio, "loc": localidad}


async def open_cascade(page: Page, fields: str = CASCADE, **query: str) -> tuple[Locator, Locator, Locator]:
    """Open a form with a cascade; return its three fields."""
    await open_form(page, fields, script="localidad-cascada.js", **query)
    estado, municipio = (page.get_by_role("combobox", name=name) for name in ("Estado", "Municipio"))
    await expect(estado.locator("option", has_text="Jalisco")).to_be_attached()
    return estado, municipio, page.get_by_role("combobox", name="Locali")


async def test_cascade_sends_three_keys_also_if_they_are_set_after_each_letter(page: Page, forms: str) -> None:
    estado, municipio, localidad = await open_cascade(page)
    await page.evaluate(CONTROL, "localidad-cascada")
    await expect(municipio).to_be_disabled()
    await expect(localidad).to_be_disabled()
    assert await sent(page) == keys()
    await estado.select_option("Jalisco")
    await municipio.select_option("Tepatitlán 2")
    await localidad.fill("penon 80")
    await page.get_by_role("option", name=PENON_80).click()
    await localidad.press("End")
    await localidad.press("Backspace")
    await expect(localidad).to_have_value(PENON_80[:-1])
    assert await sent(page) == keys("14", "14002")
    await municipio.select_option("Tepatitlán 3")
    await expect(localidad).to_have_value("")  # though it had no key
    await municipio.select_option("Tepatitlán 2")
    await localidad.fill("penon 80")
    await expect(page.get_by_role("option", name=PENON_80)).to_have_count(1)
    await localidad.press("ArrowDown")
    await localidad.press("Enter")
    assert (await sent(page), await of_field(page, "checkValidity()", "localidad-cascada")) == (
        keys("14", "14002", "140020005"), True,
    )  # fmt: skip
    await page.get_by_role("button", name="Guardar").click()
    await expect(page).to_have_url(f"{forms}/saved?estado=14&mun=14002&loc=140020005&boton=guardar")


async def test_each_level_of_a_cascade_empties_those_below(page: Page) -> None:
    estado, municipio, localidad = await open_cascade(page, CASCADE.replace("required", 'value="140020005"'))
    await expect(localidad).to_have_value(PENON_80)
    await expect(municipio).to_have_value("14002")
    await expect(estado).to_have_value("14")
    await municipio.select_option("Tepatitlán 3")
    assert await sent(page) == keys("14", "14003")
    await expect(localidad).to_have_value("")
    await estado.select_option("Yucatán")
    assert await sent(page) == keys("31")
    await expect(localidad).to_be_disabled()
    await estado.select_option("—")
    assert await sent(page) == keys()
    await page.evaluate("document.forms[0].reset()")
    assert await sent(page) == keys("14", "14002", "140020005")
    await expect(municipio).to_have_value("14002")
    await expect(localidad).to_have_value(PENON_80)


async def test_cascade_takes_an_id_and_no_key_that_its_lists_lack(page: Page) -> None:
    given = {
        "10010006": ("01", "01001", NANDU, True),  # an id, not Durango
        "1001": ("01", "01001", "", True),
        "99001": ("", "", "", False),
        "01999": ("01", "", "", False),
        "1400200": ("", "", "", False),
        "010019999": ("01", "01001", "010019999", False),
    }
    fields = (
        f'<localidad-cascada value="{key}" name-estado="e{key}" name-municipio="m{key}" name-localidad="l{key}">'
        "</localidad-cascada>"
        for key in given
    )
    await open_form(page, "".join(fields), script="localidad-cascada.js")
    await page.wait_for_load_state("networkidle")
    values = await sent(page)
    for key, expected in given.items():
        is_good = await of_field(page, "checkValidity()", f'[value="{key}"]')
        assert (*(values[f"{level}{key}"] for level in "eml"), is_good) == expected, key


async def test_lists_of_a_cascade_are_in_the_order_of_their_names(page: Page) -> None:
    names = ["Zapopan", "Ñuñoa", "Jalisco", "Ébano", "Nuevo", "Eduardo", "Álamos", "Oaxaca"]
    found = {"results": [{"id": at, "nombre": name} for at, name in enumerate(names, 1)]}
    await page.route("**/api/census/estados/**", lambda route: route.fulfill(json=found, headers=CROSS_ORIGIN))
    estado, _, _ = await open_cascade(page)
    ordered = ["Álamos", "Ébano", "Eduardo", "Jalisco", "Nuevo", "Ñuñoa", "Oaxaca", "Zapopan"]
    await expect(estado.locator("option")).to_have_text(["—", *ordered])


async def test_cascade_says_what_is_missing(page: Page) -> None:
    for language, sentences in (
        ("en", ("Choose an estado.", "Choose a municipio.", "Type a place and choose it from the list.")),
        ("es", ("Elija un estado.", "Elija un municipio.", "Escriba un lugar y elíjalo de la lista.")),
    ):
        fields = await open_cascade(page, lang=language)
        for field, sentence in zip(fields, sentences, strict=True):
            await page.get_by_role("button", name="Guardar").click()
            await expect(field).to_be_focused()
            assert await of_field(page, "validationMessage", "localidad-cascada") == sentence
            if field != fields[-1]:
                await field.select_option(index=1)


async def test_late_or_missing_municipios_are_dropped_or_asked_for_again(page: Page) -> None:
    late = await hold(page, "**/municipios/?estado_id=14&**")
    estado, municipio, _ = await open_cascade(page)
    await estado.select_option("14")
    await late.asked()
    await estado.select_option("01")
    options = municipio.locator("option")
    await expect(options).to_have_text(["—", "Municipio 001", "Municipio 002"])
    late.release()
    await page.evaluate(LATE)
    await expect(options).to_have_text(["—", "Municipio 001", "Municipio 002"])
    await page.route("**/municipios/**", lambda route: route.abort())
    await estado.select_option("31")
    told = page.get_by_role("status").filter(has_text="No hay conexión con el catálogo.")
    await expect(told).to_be_visible()
    await page.unroute("**/municipios/**")
    await municipio.focus()
    await expect(municipio.locator("option")).to_have_count(4)
    await expect(told).to_have_count(0)


# -- The package


@pytest.mark.parametrize("name", ["field", "cascada"])
async def test_types_name_what_the_element_has(page: Page, name: str) -> None:
    await open_form(page, f"<localidad-{name}></localidad-{name}>", script=f"localidad-{name}.js")
    types = [(ROOT / "npm" / f"localidad-{file}.d.ts").read_text(encoding="utf-8") for file in (name, "field")]
    [own] = re.findall(r"^export class .*?\{\n(.*?)^\}", types[0], re.MULTILINE | re.DOTALL)
    [of_both] = re.findall(r"^export interface FormField \{\n(.*?)^\}", types[1], re.MULTILINE | re.DOTALL)
    declared = set(re.findall(r"^  (?:readonly |get |set )?([A-Za-z]+)[:(]", own + of_both, re.MULTILINE))
    members = """(name) => {
        const own = customElements.get(name).prototype;
        return [own, Object.getPrototypeOf(own)].flatMap((one) => Object.getOwnPropertyNames(one));
    }"""  # of the element, and of FormField
    has = {one for one in await page.evaluate(members, f"localidad-{name}") if not one.endswith("Callback")}
    assert declared == has - {"constructor"}


@pytest.mark.tail  # TypeScript takes half a minute
def test_package_does_nothing_on_a_server_and_the_example_for_react_compiles(tmp_path: Path) -> None:
    node = needed(shutil.which("node"), "This test needs Node.js, and what `make lint` installs.")
    installed = ROOT / "tests" / "browser" / "node_modules"
    needed(installed, "This test needs Node.js, and what `make lint` installs.")
    package = tmp_path / "node_modules" / "localidad-field"
    shutil.copytree(ROOT / "npm", package)
    for script in STATIC.glob("localidad-*.js"):
        shutil.copy(script, package)
    for name in ("@types", "csstype"):
        (package.parent / name).symlink_to(installed / name)
    guide = (ROOT / "docs" / "guides" / "field.md").read_text(encoding="utf-8")
    (tmp_path / "Place.tsx").write_text(guide.partition("```tsx\n")[2].partition("```")[0], encoding="utf-8")
    (tmp_path / "server.mjs").write_text('import "localidad-field";\nimport "localidad-field/localidad-cascada.js";\n')
    options = ["--strict", "--noEmit", "--jsx", "react-jsx", "--target", "es2022", "--moduleResolution", "bundler"]
    for command in (["server.mjs"], [str(installed / "typescript" / "bin" / "tsc"), *options, "Place.tsx"]):
        ended = subprocess.run([node, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
