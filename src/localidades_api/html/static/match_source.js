// What was pasted or chosen, and what the service understands of it before anything is matched.
import { csvOfPasted, cut, delimiterOf, quote } from "./csv.js";
import { amount, element, say, words } from "./match_words.js";
import { XLSX, isWorkbook } from "./workbook.js";

const SAMPLE = 2 ** 21; // bytes of a text that are sent to be understood
const WAIT = 300; // milliseconds without another change
const SHOWN = 60; // columns
const WIDEST_HEADLESS = 3; // columns of a table whose first line may be a place
const HEADLESS = ["nombre", "municipio", "estado"]; // what its columns are until somebody says otherwise
const MARK = "\ufeff";
const bytes = new TextDecoder("windows-1252"); // a character is a byte

const byId = (id) => document.getElementById(id);
const [file, rows, panel, sheet, headerRow, headless, table] =
  ["file", "rows", "understood", "sheet", "header-row", "headless", "sample"].map(byId);
const roleNames = Object.fromEntries([...byId("roles").content.children].map((one) => [one.value, one.textContent]));
const ALONE = ["nombre", "cvegeo", "clave"]; // a table needs one of these

export class Source {
  // `tell` is told of an error of the table, or null.
  constructor(resource, tell) {
    [this.resource, this.tell] = [resource, tell];
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
      this.headerRow = headerRow.value;
      this.again();
    });
    headless.addEventListener("change", () => {
      this.setHeadless(headless.checked);
      this.again();
    });
    if (this.isGiven) this.begin(); // a browser may keep what was entered
  }

  get isGiven() {
    return file.files.length > 0 || rows.value.trim() !== "";
  }

  get isWorkbook() {
    return isWorkbook(file.files[0]);
  }

  forget() {
    [this.found, this.sheet, this.headerRow, this.isHeadless] = [null, null, null, null];
    this.named = new Map(); // the column of each role that the person has named, "" for none
  }

  setHeadless(isHeadless) {
    this.isHeadless = isHeadless;
    this.headlessRoles = this.found.columns.map((_, at) => HEADLESS[at] ?? "");
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
    panel.style.setProperty("--rows", Math.max(1, Math.min(5, lines))); // where its first rows will be
    if (file.files.length) this.understand();
    else this.waiting = setTimeout(() => this.understand(), this.isWaiting ? WAIT : 0);
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
  async settle() {
    if (!this.isGiven) return;
    clearTimeout(this.waiting);
    if (!this.reading) this.understand();
    await this.reading;
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
    if (signal.aborted) return;
    if (!answer.ok && this.mayBeHeadless(found)) {
      this.found = found;
      this.setHeadless(true);
      await this.read(signal);
      return;
    }
    this.found = found.columns ? { ...found, isCut } : null;
    this.show(found);
    this.tell(answer.ok ? null : found);
  }

  // Whether the first line may be a place: nothing in it is recognized.
  mayBeHeadless({ columns, roles, sheets }) {
    const isPlain = columns && !sheets && !Object.keys(roles).length;
    return isPlain && this.isHeadless === null && columns.length <= WIDEST_HEADLESS;
  }

  // Returns what to send: the body and its type, the query that says how to read it, and the columns that tell the place.
  async request(limit = Infinity) {
    const { isWorkbook } = this;
    const query = new URLSearchParams();
    if (this.sheet) query.set("sheet", this.sheet);
    if (this.headerRow) query.set("header_row", this.headerRow);
    if (!this.isHeadless) for (const [role, header] of this.named) query.set(role, header);
    const headers = Object.values(this.found?.roles ?? {});
    if (isWorkbook) return { body: file.files[0], type: XLSX, query, headers };
    let body = file.files[0] ?? new Blob([MARK, csvOfPasted(rows.value)]); // without the mark, it would be windows-1252
    const isCut = body.size > limit;
    if (isCut) body = body.slice(0, cut(bytes.decode(await body.slice(0, limit).arrayBuffer())).length);
    if (this.isHeadless) body = await this.withHeader(body);
    return { body, type: "text/csv", query, headers, isCut };
  }

  async withHeader(body) {
    const hasMark = (await body.slice(0, 3).text()) === "" && body.size >= 3; // `text` leaves the mark out
    const delimiter = delimiterOf(bytes.decode(await body.slice(hasMark ? 3 : 0, 65536).arrayBuffer()));
    const header = this.headlessRoles.map((role, at) => quote(role || `columna ${at + 1}`, delimiter));
    return new Blob([MARK, `${header.join(delimiter)}\n`, hasMark ? body.slice(3) : body]);
  }

  // The number of rows, as far as it is known.
  get quantity() {
    return this.found && !this.found.isCut ? this.found.quantity : undefined;
  }

  show({ sheets = [], sheet: read, header_row: row, quantity, columns = [], roles = {} }) {
    byId("of-workbook").hidden = headerRow.disabled = !sheets.length; // it is not checked then
    sheet.replaceChildren(...[...new Set([...sheets, ...(read ? [read] : [])])].map((name) => new Option(name)));
    if (read) sheet.value = read;
    if (row) headerRow.value = row;
    byId("of-text").hidden = sheets.length > 0 || !columns.length;
    headless.checked = Boolean(this.isHeadless);
    byId("summary").textContent = quantity === undefined ? "" : this.summary({ read, row, quantity, roles });
    this.drawTable();
  }

  summary({ read, row, quantity, roles }) {
    const rowsFound = this.found.isCut ? amount(quantity, "moreThanOneRow", "moreThanRows") : amount(quantity, "oneRow", "severalRows");
    const where = read ? say("inSheet", { sheet: read, row, rows: rowsFound }) : rowsFound;
    const assigned = Object.keys(roleNames).filter((role) => roles[role] !== undefined)
      .map((role) => (this.isHeadless ? roleNames[role] : `${roleNames[role]}: ${roles[role]}`));
    return `${where}. ${assigned.join(" · ")}`;
  }

  // The columns as the person sees them, each with a choice of what it contains, above the first rows.
  drawTable() {
    const { columns = [], roles = {}, rows: first = [] } = this.found ?? {};
    byId("sample-region").hidden = !columns.length;
    const shown = columns.slice(0, SHOWN);
    const roleOf = (name) => Object.keys(roles).find((role) => roles[role] === name) ?? "";
    const heads = shown.map((name, at) => {
      const select = element("select", {}, new Option(words.nothing, ""),
        ...Object.entries(roleNames).map(([role, text]) => new Option(text, role)));
      select.value = roleOf(name);
      select.addEventListener("change", () => this.name(name, at, select.value));
      const label = element("label", {}, this.isHeadless ? say("column", { number: at + 1 }) : name, select);
      return element("th", { scope: "col", className: select.value ? "used" : "" }, label);
    });
    const line = (cells) => element("tr", {}, ...cells);
    const focused = [...table.querySelectorAll("select")].indexOf(document.activeElement);
    table.replaceChildren(element("thead", {}, line(heads)), element("tbody", {},
      ...first.map((cells) => line(cells.slice(0, SHOWN).map((text) => element("td", {}, text))))));
    table.querySelectorAll("select")[focused]?.focus();
  }

  // Says what a column contains; it then contains nothing else.
  name(column, at, role) {
    if (this.isHeadless) {
      this.headlessRoles = this.found.columns.map((_, index) => {
        if (index === at) return role;
        return this.headlessRoles[index] === role ? "" : this.headlessRoles[index];
      });
    } else {
      const [had] = Object.entries(this.found.roles).find(([, header]) => header === column) ?? [];
      if (had) this.named.set(had, "");
      if (role) this.named.set(role, column);
    }
    this.understand();
  }
}

// Whether a problem is that no column tells the place.
export const lacksColumns = ({ columns, roles = {} }) => columns !== undefined && !ALONE.some((role) => role in roles);
