// The columns of what was pasted or chosen: guessed from the headers as the service does, and named by the person.
import { DELIMITERS, decode, parse, quote, unquote } from "./csv.js";
import { XLSX, isWorkbook } from "./workbook.js";

const SAMPLE = 65536; // bytes that tell the columns
const WAIT = 100; // milliseconds without another change
const ROLES_ALONE = ["nombre", "cvegeo", "clave"]; // a row needs one of these
// A workbook, say: the service tells what to do with it, unless a header stands before it.
const OTHER_FORMAT = /^%PDF|[\0-\x08\x0e-\x1f]/;
const SEPARATOR_LINE = /^"?sep=([,;\t|])"?(?:\r\n?|\n)/i; // for Excel, before the header
const MARK = "\ufeff";

// As in bulk/rows.py: headers that may be of a register's own codes, and those of the keys of municipios.
const OTHER_CODES = /^(clave|id_localidad)$/;
const KEY_OF_MUNICIPIO = /^(cve_?mun|cve_municipio|clave(_del)?_municipio|clave_mun|municipio_id|id_municipio|c_mnpio)$/;

// What `fold_header` does in catalogue/folding.py; a test compares the two, and `guess` below.
export const foldHeader = (text) => {
  const plain = text.replace(/[½°]/g, "o").replace(/['`´‘’′ʼꞋꞌ]/g, "").normalize("NFKD").replace(/\p{M}/gu, "");
  return plain.toLowerCase().match(/[a-z0-9]+/g)?.join("_") ?? "";
};

// Returns the column of each role, as `assign` does in bulk/rows.py; `known` has the headers of each role.
export const guess = (headers, known) => {
  const folded = headers.map(foldHeader);
  const found = {};
  for (const [role, names] of Object.entries(known)) {
    const at = folded.indexOf(names.find((name) => folded.includes(name)));
    if (at >= 0 && !Object.values(found).includes(at)) found[role] = at;
  }
  const mayBeOther = "nombre" in found && !("cvegeo" in found) && !KEY_OF_MUNICIPIO.test(folded[found.municipio] ?? "");
  if (mayBeOther && OTHER_CODES.test(folded[found.clave] ?? "")) delete found.clave;
  return found;
};

export class Columns {
  constructor(form) {
    this.form = form;
    const byId = (id) => form.querySelector(`#${id}`);
    [this.rows, this.file, this.headless, this.sheet] = ["rows", "file", "headless", "sheet"].map(byId);
    this.details = form.querySelector("#columns");
    this.selects = [...form.querySelectorAll("select")];
    this.known = JSON.parse(form.dataset.columns);
    this.rows.addEventListener("input", () => {
      this.file.value = "";
      this.offerChanging();
    });
    this.file.addEventListener("change", () => this.offer());
    this.sheet.addEventListener("change", () => this.tell([]));
    this.headless.addEventListener("change", () => this.show());
    this.offer();
  }

  // Offers the columns of a text that is changing: at once, since they move the button, which may be about to be
  // clicked, and again when it stays as it is; a browser may tell of each line that is pasted.
  offerChanging() {
    if (!this.waiting) this.offer();
    this.stopWaiting();
    this.waiting = setTimeout(() => {
      this.stopWaiting();
      this.offer();
    }, WAIT);
  }

  stopWaiting() {
    clearTimeout(this.waiting);
    this.waiting = null;
  }

  offer() {
    this.rows.required = !this.file.files.length;
    const isOfSheet = isWorkbook(this.file.files[0]);
    [this.sheet.parentElement.hidden, this.headless.parentElement.hidden] = [!isOfSheet, isOfSheet];
    if (isOfSheet) this.tell([]); // the service reads workbooks
    if (isOfSheet) return;
    this.read().catch(() => {}); // whoever sends a file that has changed meanwhile is told then
  }

  async sample() {
    const file = this.file.files[0];
    return file ? decode(await file.slice(0, SAMPLE).arrayBuffer()) : this.rows.value.slice(0, SAMPLE);
  }

  async read() {
    const sample = (await this.sample()).replace(/^[\r\n]+/, "");
    const [separatorLine = "", separator] = sample.match(SEPARATOR_LINE) ?? [];
    const text = sample.slice(separatorLine.length);
    const likeness = ({ guessed, first }) => Object.keys(guessed).length * 1000 + first.length;
    const tables = (separator ? [separator] : DELIMITERS).map((delimiter) => {
      const records = parse(text, delimiter).slice(0, 100).map((record) => record.map(unquote));
      const first = records[0] ?? [];
      const width = Math.max(0, ...records.map((record) => record.length));
      return { delimiter, first, width, guessed: guess(first, this.known) };
    });
    const table = tables.reduce((best, one) => (likeness(one) > likeness(best) ? one : best));
    if (JSON.stringify(table) === JSON.stringify(this.table)) return; // what the person has named still holds
    this.table = table;
    const isRecognized = ROLES_ALONE.some((role) => role in this.table.guessed);
    this.headless.checked = !isRecognized && this.table.width <= 3 && !OTHER_FORMAT.test(text);
    this.details.open = !isRecognized && text.trim() !== "";
    this.show();
  }

  // Offers the columns of a sheet as the service has read them, or none before it has.
  tell(first) {
    if (JSON.stringify(first) === JSON.stringify(this.table.first)) return; // what the person has named still holds
    this.table = { first, width: first.length, guessed: guess(first, this.known) };
    this.headless.checked = false;
    this.details.open &&= first.length > 0;
    this.show();
  }

  // Returns the header of each role that has a column.
  headers() {
    return this.chosen().map(([, at]) => this.table.first[at]);
  }

  chosen() {
    return this.selects.filter(({ value }) => value !== "").map(({ name, value }) => [name, Number(value)]);
  }

  show() {
    const { first, width, guessed } = this.table;
    const isHeadless = this.headless.checked;
    const labels = isHeadless
      ? Array.from({ length: width }, (_, at) => `${at + 1}: ${first[at] ?? ""}`)
      : first;
    const chosen = isHeadless ? { nombre: 0, municipio: 1, estado: 2 } : guessed;
    for (const select of this.selects) {
      const isGuessed = chosen[select.name] < labels.length;
      // The service takes a column that it recognizes: another can be named, but none can't.
      const none = isGuessed && !isHeadless ? [] : [new Option("—", "")];
      select.replaceChildren(...none, ...labels.map((label, at) => new Option(label.slice(0, 60), at)));
      select.value = isGuessed ? chosen[select.name] : "";
    }
  }

  // Returns what to send: the body and its type, the query that names columns, and the header of each role in the
  // answers, which of a workbook only they tell.
  async request() {
    this.stopWaiting();
    if (isWorkbook(this.file.files[0])) return this.requestOfSheet();
    await this.read();
    const { first, width, guessed, delimiter } = this.table;
    // Spreadsheets take a file that does not begin with the mark for windows-1252.
    const body = this.file.files[0] ?? new Blob([MARK, this.rows.value]);
    const chosen = this.chosen();
    const query = new URLSearchParams();
    if (this.headless.checked) {
      const roleAt = (at) => chosen.find(([, one]) => one === at)?.[0];
      const header = Array.from({ length: width }, (_, at) => quote(roleAt(at) ?? `columna ${at + 1}`, delimiter));
      const hasMark = body.size >= 3 && (await body.slice(0, 3).text()) === ""; // `text` leaves the mark out
      const line = `${header.join(delimiter)}\r\n`;
      const whole = new Blob([MARK, line, hasMark ? body.slice(3) : body]);
      return { body: whole, type: "text/csv", query, headers: chosen.map(([role]) => role) };
    }
    this.name(query);
    return { body, type: "text/csv", query, headers: this.headers() };
  }

  requestOfSheet() {
    const query = new URLSearchParams(this.sheet.value ? { sheet: this.sheet.value } : {});
    this.name(query);
    return { body: this.file.files[0], type: XLSX, query };
  }

  // Names the columns that the service would not take by itself.
  name(query) {
    const { first, guessed } = this.table;
    for (const [role, at] of this.chosen()) if (at !== guessed[role]) query.set(role, first[at]);
  }
}
