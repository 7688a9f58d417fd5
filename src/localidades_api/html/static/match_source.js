// What was pasted or chosen, and what the service understands of it before anything is matched.
import { csvOfPasted, cut } from "./csv.js";
import { amount, byId, say, sentenceOf, words } from "./match_texts.js";
import { element, offerMunicipios } from "./page.js";

export const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const SAMPLE = 2 ** 21; // bytes of a text that are sent to be understood
const WAIT = 300; // milliseconds without another change
const SHOWN = 60; // columns
const MARK = "\ufeff";
const bytes = new TextDecoder("windows-1252"); // a character is a byte

const [file, rows, panel, table] = [byId("file"), byId("rows"), byId("understood"), byId("sample")];
const [sheet, headerRow, headless, kind] = [byId("sheet"), byId("header-row"), byId("headless"), byId("kind")];
const areas = { estado: byId("of-estado"), municipio: byId("of-municipio") };
const roleNames = Object.fromEntries([...byId("roles").content.querySelectorAll("option")].map((one) => [one.value, one.textContent]));

export class Source {
  named = new Map(); // the column of each role that the person has named, "" for none

  // `tell` is told of an error of the table, or null.
  constructor(resource, tell) {
    this.resource = resource;
    this.tell = tell;
    this.forget();
    rows.addEventListener("input", () => {
      file.value = "";
      this.begin();
    });
    file.addEventListener("change", () => this.begin());
    sheet.addEventListener("change", () => {
      [this.sheet, this.headerRow] = [sheet.value, null];
      this.again();
    });
    headerRow.addEventListener("change", () => {
      if (!headerRow.reportValidity()) return;
      [this.sheet, this.headerRow] = [sheet.value, headerRow.value]; // not that row of another sheet
      this.again();
    });
    headless.addEventListener("change", () => {
      this.headerRow = headless.checked ? 0 : 1;
      this.again();
    });
    kind.addEventListener("change", () => this.understand());
    for (const select of Object.values(areas)) select.addEventListener("change", () => this.understand());
    if (this.isGiven) this.begin(); // a browser may keep what was entered
  }

  get isGiven() {
    return file.files.length > 0 || rows.value.trim() !== "";
  }

  get isWorkbook() {
    const [chosen] = file.files;
    return chosen !== undefined && (chosen.type === XLSX || /\.xlsx$/i.test(chosen.name));
  }

  // What the person has said of how the list is read.
  get options() {
    const fields = [...document.querySelectorAll("[name=field]:checked")].map((one) => /** @type {HTMLInputElement} */ (one).value);
    const { sheet, headerRow, named, areas } = this;
    return { sheet, headerRow, kind: kind.value, named: [...named], areas, sure: byId("sure").value, fields };
  }

  // The names of the areas that all rows are of, by role.
  get areas() {
    return Object.fromEntries(Object.entries(areas).filter(([, { value }]) => value).map(([role, { selectedOptions }]) => [role, selectedOptions[0].text]));
  }

  async setAreas(given) {
    const pick = (select, name) => { select.selectedIndex = Math.max(0, [...select.options].findIndex(({ text }) => text === name)); };
    pick(areas.estado, given.estado);
    await offerMunicipios(areas.municipio);
    pick(areas.municipio, given.municipio);
    this.understand();
  }

  // Whether the rows say their estado or municipio, or the person has.
  has(role) {
    const { roles = {} } = this.found ?? {};
    return Boolean(roles[role] || (role === "municipio" && roles.cve_mun) || areas[role].value);
  }

  // Gives a list that was kept again, to be read as it was.
  async restore({ blob, name, text, options }) {
    const transfer = new DataTransfer();
    if (name) transfer.items.add(new File([blob], name, { type: blob.type }));
    file.files = transfer.files;
    rows.value = text ?? "";
    this.begin();
    [this.sheet, this.headerRow, kind.value, this.named] = [options.sheet, options.headerRow, options.kind, new Map(options.named)];
    byId("sure").value = options.sure;
    byId("sure").dispatchEvent(new Event("input"));
    for (const one of document.querySelectorAll("[name=field]")) {
      const box = /** @type {HTMLInputElement} */ (one);
      box.checked = options.fields.includes(box.value);
    }
    await this.setAreas(options.areas);
  }

  forget() {
    [this.found, this.sheet] = [null, null];
    /** @type {string | number | null} */
    this.headerRow = null;
    kind.value = "";
    this.named.clear();
    areas.estado.value = "";
    offerMunicipios(areas.municipio);
  }

  // Whether the first line is a place, as the person says or the service has found out.
  get isHeadless() {
    return this.headerRow === 0 || (this.headerRow === null && this.found?.has_header === false);
  }

  // Understands something else: at once, and again when a text that changes stays as it is.
  begin() {
    this.forget();
    rows.required = !file.files.length;
    byId("chosen").textContent = file.files[0]?.name ?? "";
    panel.hidden = !this.isGiven;
    clearTimeout(this.waiting);
    if (!this.isGiven) return this.stop();
    const lines = file.files.length ? Infinity : rows.value.trim().split("\n").length - 1;
    panel.style.setProperty("--rows", String(Math.max(1, Math.min(5, lines)))); // where its first rows will be
    if (file.files.length) return this.understand();
    this.waiting = setTimeout(() => this.understand(), this.isWaiting ? WAIT : 0);
    this.isWaiting = true;
  }

  // Understands the same with another sheet or header.
  again() {
    this.named.clear();
    this.understand();
  }

  stop() {
    this.asking?.abort();
    this.tell(null);
  }

  // Resolves when what was entered last is understood, or is known not to be.
  async settle(signal) {
    signal.throwIfAborted();
    if (this.isWaiting) {
      clearTimeout(this.waiting);
      this.understand();
    }
    const { asking } = this;
    const stop = () => asking?.abort();
    signal.addEventListener("abort", stop);
    await this.reading;
    signal.removeEventListener("abort", stop);
    signal.throwIfAborted();
  }

  understand() {
    this.isWaiting = false;
    this.stop();
    const asking = (this.asking = new AbortController());
    panel.setAttribute("aria-busy", "true");
    const reading = this.read(asking.signal).catch((error) => {
      if (error.name === "AbortError") return;
      if (!this.found) this.show(/** @type {any} */ ({})); // not what the list before had
      this.tell({ error });
    }).finally(() => {
      if (this.asking !== asking) return;
      panel.setAttribute("aria-busy", "false");
      this.reading = null;
    });
    this.reading = reading;
  }

  async read(signal) {
    const { body, type, query, isCut } = await this.request(SAMPLE);
    const answer = await fetch(`${this.resource}preview/?${query}`, {
      method: "POST", headers: { "Content-Type": type }, body, signal,
    });
    const found = await answer.json();
    const note = found.note ? sentenceOf(found.note) : [];
    if (signal.aborted) return;
    this.found = found.columns ? { ...found, isCut } : null;
    byId("note").replaceChildren(...note);
    panel.hidden = answer.status >= 400 && answer.status < 500 && !found.columns && !found.sheets; // nothing was understood
    this.show(found);
    this.tell(answer.ok ? null : found);
  }

  // Returns what to send: the body and its type, and the query that says how to read it.
  async request(limit = Infinity) {
    const { isWorkbook } = this;
    const query = new URLSearchParams();
    if (this.sheet) query.set("sheet", this.sheet);
    if (this.headerRow !== null) query.set("header_row", String(this.headerRow));
    if (kind.value) query.set("kind", kind.value);
    // The service takes a column or an area.
    for (const [role, text] of [...this.named, ...Object.entries(this.areas)]) query.set(role, text);
    if (isWorkbook) return { body: file.files[0], type: XLSX, query };
    /** @type {Blob} */
    let body = file.files[0] ?? new Blob([MARK, csvOfPasted(rows.value)]); // without the mark, it would be windows-1252
    const isCut = body.size > limit;
    if (isCut) body = body.slice(0, cut(bytes.decode(await body.slice(0, limit).arrayBuffer())).length);
    return { body, type: "text/csv", query, isCut };
  }

  // The number of rows, as far as it is known.
  get quantity() {
    return this.found && !this.found.isCut ? this.found.quantity : undefined;
  }

  show({ sheets = [], sheet: read, header_row: row, quantity, columns = [], roles = {}, kind: found, unused = [] }) {
    byId("of-workbook").hidden = !sheets.length;
    headerRow.disabled = !sheets.length || this.isHeadless; // it is not checked then
    sheet.replaceChildren(...[...new Set([...sheets, ...(read ? [read] : [])])].map((name) => new Option(name)));
    if (read) sheet.value = read;
    if (row) headerRow.value = row;
    byId("of-table").hidden = !columns.length;
    headless.checked = this.isHeadless;
    const kinds = Object.fromEntries([...kind.options].map((one) => [one.value, one.textContent]));
    kind.options[0].textContent = found in kinds ? say("automaticKind", { kind: kinds[found].toLowerCase() }) : words.automatic;
    byId("summary").textContent = quantity === undefined ? "" : this.summary({ read, row, quantity, roles });
    const isOfAreas = found === "municipio" || found === "estado"; // whose dwellings and points no match has
    for (const one of document.querySelectorAll(".of-places [name=field], .of-areas [name=field]")) {
      const box = /** @type {HTMLInputElement} */ (one);
      box.disabled = isOfAreas === (box.value !== "localidades");
    }
    byId("areas").hidden = found === "estado";
    /** @type {HTMLElement} */ (areas.municipio.closest("label")).hidden = found === "municipio";
    const isAsked = kind.value === "" || found === "localidad"; // the person has not said that a row is a municipio
    const open = unused.find(({ role }) => isAsked && !this.named.has(role) && !(role in areas && this.has(role)));
    if (open) byId("note").append(" ", say(open.role === "nombre" ? "unusedPlaces" : "unused", open));
    this.drawTable();
  }

  summary({ read, row, quantity, roles }) {
    const rowsFound = this.found.isCut ? amount(quantity, "moreThanOneRow", "moreThanRows") : amount(quantity, "oneRow", "severalRows");
    const place = this.isHeadless ? "inSheetWithoutHeader" : "inSheet";
    const where = read ? say(place, { sheet: read, row, rows: rowsFound }) : rowsFound;
    const assigned = Object.keys(roleNames).filter((role) => roles[role] !== undefined)
      .map((role) => (this.isHeadless ? roleNames[role] : `${roleNames[role]}: ${roles[role]}`));
    return `${where}. ${assigned.join(" · ")}`;
  }

  // The columns as the person sees them, each with a choice of what it contains, above the first rows.
  drawTable() {
    const { columns = [], roles = {}, rows: first = [] } = this.found ?? {};
    byId("sample-region").hidden = !columns.length;
    const shown = columns.slice(0, SHOWN);
    const titleOf = (name, at) => (this.isHeadless || /^column \d+$/.test(name) ? say("column", { number: at + 1 }) : name);
    const roleOf = (name) => Object.keys(roles).find((role) => roles[role] === name) ?? "";
    const heads = shown.map((name, at) => {
      const select = element("select", {}, new Option(words.nothing, ""),
        ...Object.entries(roleNames).map(([role, text]) => new Option(text, role)));
      select.value = roleOf(name);
      select.addEventListener("change", () => this.name(name, at, select.value));
      select.id = `column-${at}`;
      const label = element("label", { htmlFor: select.id }, titleOf(name, at));
      return element("th", { scope: "col", className: select.value ? "used" : "" }, label, select);
    });
    const line = (cells) => element("tr", {}, ...cells);
    const focused = [...table.querySelectorAll("select")].findIndex((select) => select === document.activeElement);
    table.replaceChildren(element("thead", {}, line(heads)), element("tbody", {},
      ...first.map((cells) => line(cells.slice(0, SHOWN).map((text) => element("td", {}, text))))));
    table.querySelectorAll("select")[focused]?.focus();
  }

  // Says what a column contains; it then contains nothing else.
  name(column, at, role) {
    if (!this.found) return; // the columns are of the list before
    const { columns, roles } = this.found;
    this.sheet = sheet.value || null;
    const had = Object.keys(roles).filter((one) => roles[one] === column); // two of a column with both degrees
    if (this.isHeadless) { // columns have numbers then, and all of them have to be said
      this.headerRow = 0;
      for (const [one, header] of Object.entries(roles)) this.named.set(one, columns.indexOf(header) + 1);
    }
    for (const one of had) this.named.set(one, "");
    if (role) this.named.set(role, this.isHeadless ? at + 1 : column);
    if (role in areas) areas[role].value = "";
    this.understand();
  }
}

// Whether a problem is that no column tells the place.
export const lacksColumns = ({ columns, detail = "" }) => columns !== undefined && detail.startsWith("The first line names no column");
