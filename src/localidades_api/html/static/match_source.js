// What was pasted or chosen, and what the service understands of it before anything is matched.
import { csvOfPasted, cut } from "./csv.js";
import { amount, byId, say, words } from "./match_words.js";
import { element } from "./page.js";

export const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const SAMPLE = 2 ** 21; // bytes of a text that are sent to be understood
const WAIT = 300; // milliseconds without another change
const SHOWN = 60; // columns
const MARK = "\ufeff";
const bytes = new TextDecoder("windows-1252"); // a character is a byte

const [file, rows, panel, table] = [byId("file"), byId("rows"), byId("understood"), byId("sample")];
const [sheet, headerRow, headless, kind] = [byId("sheet"), byId("header-row"), byId("headless"), byId("kind")];
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
    if (this.isGiven) this.begin(); // a browser may keep what was entered
  }

  get isGiven() {
    return file.files.length > 0 || rows.value.trim() !== "";
  }

  get isWorkbook() {
    const [chosen] = file.files;
    return chosen !== undefined && (chosen.type === XLSX || /\.xlsx$/i.test(chosen.name));
  }

  forget() {
    [this.found, this.sheet] = [null, null];
    /** @type {string | number | null} */
    this.headerRow = null;
    kind.value = "";
    this.named.clear();
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
    const stop = () => this.asking?.abort();
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
      if (error.name !== "AbortError") this.tell({ error });
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
    const note = found.note ? (await import("./match_sentences.js")).sentenceOf(found.note) : [];
    if (signal.aborted) return;
    this.found = found.columns ? { ...found, isCut } : null;
    byId("note").replaceChildren(...note);
    this.show(found);
    this.tell(answer.ok ? null : found);
  }

  // Returns what to send: the body and its type, the query that says how to read it, and the columns that tell the place.
  async request(limit = Infinity) {
    const { isWorkbook } = this;
    const query = new URLSearchParams();
    if (this.sheet) query.set("sheet", this.sheet);
    if (this.headerRow !== null) query.set("header_row", String(this.headerRow));
    if (kind.value) query.set("kind", kind.value);
    for (const [role, header] of this.named) query.set(role, header);
    const headers = Object.values(this.found?.roles ?? {});
    if (isWorkbook) return { body: file.files[0], type: XLSX, query, headers };
    /** @type {Blob} */
    let body = file.files[0] ?? new Blob([MARK, csvOfPasted(rows.value)]); // without the mark, it would be windows-1252
    const isCut = body.size > limit;
    if (isCut) body = body.slice(0, cut(bytes.decode(await body.slice(0, limit).arrayBuffer())).length);
    return { body, type: "text/csv", query, headers, isCut };
  }

  // The number of rows, as far as it is known.
  get quantity() {
    return this.found && !this.found.isCut ? this.found.quantity : undefined;
  }

  show({ sheets = [], sheet: read, header_row: row, quantity, columns = [], roles = {}, kind: found }) {
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
    const { columns, roles } = this.found;
    this.sheet = sheet.value || null;
    const [had] = Object.entries(roles).find(([, header]) => header === column) ?? [];
    if (this.isHeadless) { // columns have numbers then, and all of them have to be said
      this.headerRow = 0;
      for (const [one, header] of Object.entries(roles)) this.named.set(one, columns.indexOf(header) + 1);
    }
    if (had) this.named.set(had, "");
    if (role) this.named.set(role, this.isHeadless ? at + 1 : column);
    this.understand();
  }
}

// Whether a problem is that no column tells the place.
export const lacksColumns = ({ columns, detail = "" }) => columns !== undefined && detail.startsWith("The first line names no column");
