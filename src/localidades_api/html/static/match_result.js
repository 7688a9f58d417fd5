// The result: sends what was given, reads the answers as they come, and writes the file with the choices. It is loaded
// when something is given.
import { join, parse, quote } from "./csv.js";
import { Answers, isCertain } from "./match_answers.js";
import { ResultMap } from "./match_map.js";
import { Rows } from "./match_table.js";
import { XLSX } from "./match_source.js";
import { Steps } from "./match_questions.js";
import { amount, byId, count, say, words } from "./match_texts.js";
import { digestOf, find, findSame, isTaken, keepWork, newer } from "./match_storage.js";

const [form, file, meter, progress] = [byId("match"), byId("file"), byId("meter"), byId("progress")];
const DEFAULT_FIELDS = form.dataset.fields;
const MEMBERS = ["outcome", "cvegeo", "label", "score", "faults", "candidates", "problem"]; // columns that no place has
const answers = new Answers(form.dataset.resource.replace(/match\/$/, ""), form.dataset.detail);
const table = new Rows(answers);
const steps = new Steps();
export const shown = new ResultMap(answers); // the map, for tests, which ask it what it draws
/** @type {any} */
let sent = null; // what the answers belong to
let isKept = true; // whether this browser has the decisions

addEventListener("beforeunload", (event) => {
  if (!isKept) event.preventDefault();
});
byId("result").addEventListener("questions", () => steps.begin(answers.asked.length));
byId("result").addEventListener("decide", async () => {
  isKept = false;
  isKept = await keep().then(() => true, () => false);
});
const tabs = new BroadcastChannel("match"); // other tabs of this browser, which may have the same list
tabs.addEventListener("message", ({ data: { key, rows } }) => {
  if (key === sent?.list.key) answers.merge(rows);
});

// What is decided of the rows that are shown, each with what it says of its place.
const decided = () => answers.answers.filter(({ id }) => answers.decisions.has(id))
  .map(({ id, said }) => [id, { ...answers.decisions.get(id), said }]);

// Keeps the list and what is decided of it in this browser, also of rows that aren't shown: those of another sheet.
async function keep() {
  const work = sent;
  const { list, isListKept } = work;
  const { all, fresh } = await keepWork(list, { left: answers.left().length, rows: decided(), isListKept });
  work.isListKept = true;
  if (fresh.length) tabs.postMessage({ key: list.key, rows: fresh });
  if (work === sent) answers.merge(all);
}

// Saves what is decided, for somebody else with the same list.
export function saveDecisions() {
  const rows = decided().filter(([, decision]) => isTaken(decision));
  save(new Blob([JSON.stringify({ decisions: rows })], { type: "application/json" }), `-${words.decisionsEnding}.json`, sent.name);
}

// Takes the decisions that somebody else has saved, of the same rows or of rows that say the same.
export async function openDecisions(file) {
  const rows = await file.text().then((text) => JSON.parse(text).decisions.filter(isDecision)).catch(() => null);
  if (!rows) throw Object.assign(new Error("refused"), { sentence: words.noDecisions });
  const [byRow, bySaid] = [new Map(rows), new Map(rows.map(([, decision]) => [decision.said, decision]))];
  const { taken, conflicts } = answers.adopt(({ id, said }) => byRow.get(id) ?? bySaid.get(said));
  const numbers = conflicts.slice(0, 10).map(({ number }) => count(number)).join(", ");
  byId("kept").textContent = [amount(taken, "openedOne", "opened"),
    ...(conflicts.length ? [say(conflicts.length === 1 ? "conflict1" : "conflicts", { count: count(conflicts.length), rows: numbers })] : [])].join(" ");
  byId("kept").scrollIntoView({ block: "center" });
}

// Whether the file has a decision there, and not something else.
function isDecision([id, decision]) {
  const { place, said } = decision;
  const isPlace = place === null || (/^\d{2}(\d{3}(\d{4})?)?$/.test(place?.cvegeo) && typeof place.label === "string");
  return isPlace && typeof id === "string" && typeof said === "string";
}

// Offers what was decided of rows of other lists that say the same.
async function offerSame() {
  const open = answers.answers.filter(({ id }) => !answers.decisionOf(id));
  const found = await findSame(sent.list.key, new Set(open.map(({ said }) => said)));
  const rows = open.filter(({ said, cvegeo }) => found.has(said) && found.get(said).place?.cvegeo !== cvegeo);
  byId("reuse").hidden = !rows.length;
  const [text, take] = /** @type {Iterable<HTMLElement>} */ (byId("reuse").children);
  const names = [...new Set(rows.map(({ said }) => found.get(said).from).filter(Boolean))].slice(0, 3);
  const of = names.length ? ` (${names.join(", ")})` : "";
  text.textContent = amount(rows.length, "sameOne", "sameRows") + of;
  take.onclick = () => {
    byId("reuse").hidden = true;
    answers.adopt((answer) => (rows.includes(answer) ? found.get(answer.said) : undefined));
    byId("undo").focus();
  };
}

// Begins the same list anew, without what was decided.
export function restart() {
  answers.forget();
  byId("resume").hidden = true;
  byId("result-title").focus();
}

async function ask({ body, type, query }, format, signal, more = {}) {
  const lang = document.documentElement.lang; // of the words in a file
  const parameters = new URLSearchParams({ ...Object.fromEntries(query), format, lang, ...more });
  const answer = await fetch(`${form.dataset.resource}?${parameters}`, {
    method: "POST", headers: { "Content-Type": type }, body, signal,
  });
  if (!answer.ok) throw Object.assign(new Error("refused"), await answer.json());
  return answer;
}

// Yields the answers some at a time, as they come.
async function* read(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop() ?? "";
    yield lines.map((line) => JSON.parse(line));
  }
}

// The columns that the file gets, besides the outcome and the key.
const chosenColumns = () => new FormData(form).getAll("field").flatMap((field) => String(field).split(","));

// Matches what the source has, and shows the answers.
export async function match(source, signal) {
  await source.settle(signal);
  const request = await source.request();
  request.query.set("sure", String(byId("sure").valueAsNumber / 100));
  const columns = ["outcome", "cvegeo", ...chosenColumns()];
  const fields = [...DEFAULT_FIELDS.split(","), ...columns].filter((name) => !MEMBERS.includes(name));
  const { roles = {}, kind: rowsAre } = source.found ?? {};
  if (roles.latitud && roles.longitud) fields.push("latitud", "longitud"); // how far the options are
  request.query.set("fields", [...new Set(fields)].join(","));
  request.query.set("answer_columns", columns.join(","));
  request.query.set("summary", "true");
  if (form.dataset.release) request.query.set("release", form.dataset.release);
  const { quantity } = source;
  const kind = request.type === XLSX ? "xlsx" : "csv";
  const response = await ask(request, "ndjson", signal, { file: kind }); // which would be matched again to be saved
  request.query.set("release", response.headers.get("Catalogue-Release")); // the file is of the same one
  /** @type {any[]} */
  const received = [];
  /** @type {BlobPart[]} */
  const pieces = [];
  for await (const some of read(response.body)) {
    for (const one of some) {
      if (one.file === undefined) received.push(one);
      else pieces.push(Uint8Array.from(atob(one.file), (letter) => letter.charCodeAt(0)));
    }
    progress.textContent = say("done", { count: count(received.length) });
    if (quantity) [meter.max, meter.value] = [quantity, received.length];
  }
  const [chosen] = file.files;
  const key = await digestOf(request.body);
  const known = await find("decisions", key).catch(() => null);
  signal.throwIfAborted();
  const list = { key, name: chosen?.name, blob: chosen, text: byId("rows").value, options: source.options };
  sent = { ...request, name: chosen?.name, list, files: { [kind]: { blob: new Blob(pieces), ...placesOf(response) } } };
  byId("csv").hidden = request.type === XLSX; // the workbook comes back
  for (const [id, decision] of newer(known?.rows ?? [], answers.decisions)) answers.decisions.set(id, decision);
  const sheet = response.headers.get("Sheet-Name");
  answers.show(received, { roles, areas: source.areas, release: request.query.get("release"), fields, kind: rowsAre, sheet });
  table.show();
  // What was kept is of the options that this match has.
  if (known && answers.answers.some(({ id }) => answers.decisionOf(id))) await keep().catch(() => {});
  await offerSame().catch(() => {}); // a private window may keep nothing
  byId("resume").hidden = true;
  offerAreas(source, received.filter(isCertain));
  shown.show({ isOther: true });
  byId("result-title").scrollIntoView();
  byId("result-title").focus({ preventScroll: true });
}

// Offers to say that all rows are of the one estado, or municipio, in which all certain places lie; a few may be chance.
function offerAreas(source, certain) {
  const only = (role) => (certain.every((one) => one[role] === certain[0][role]) ? certain[0]?.[role] : undefined);
  const estado = only("estado");
  const municipio = estado && !source.has("municipio") ? only("municipio") : source.areas.municipio;
  const isNew = (estado && !source.has("estado")) || (municipio && !source.has("municipio"));
  byId("same").hidden = !isNew || certain.length < 3 || !answers.left().length;
  const [said, take] = /** @type {Iterable<HTMLElement>} */ (byId("same").children);
  said.textContent = say("same", { count: count(certain.length), area: municipio || estado });
  take.textContent = words.take;
  take.onclick = async () => {
    await source.setAreas({ estado, municipio });
    form.requestSubmit(byId("send"));
  };
}

// Returns where a table has its header, and each member of the answers, as the service says.
function placesOf({ headers }) {
  const places = headers.get("Answer-Columns").split(", ").map((place) => place.split("="));
  return { headerRow: Number(headers.get("Header-Row") ?? 1), columns: new Map(places.map(([name, at]) => [name, Number(at)])) };
}

// The service writes the file; the answers that a person has chosen are replaced in it.
async function written(format, signal) {
  await answers.describeSearched();
  if (!sent.files[format]) {
    const response = await ask(sent, format, signal);
    sent.files[format] = { blob: await response.blob(), ...placesOf(response) };
  }
  const { blob, ...places } = sent.files[format];
  return { content: await blob.arrayBuffer(), ...places };
}

export async function downloadWorkbook(signal) {
  const { change } = await import("./workbook.js"); // which a CSV file doesn't need
  const { content, headerRow, columns: places } = await written("xlsx", signal);
  const changes = (index) => answers.changesOf(index);
  save(await change(content, headerRow, places, changes, answers.countInFile()), `-${words.ending}.xlsx`, sent.name);
}

// Saves the rows as CSV, or only those that have no key.
export async function downloadText(signal, isOpenOnly = false) {
  const { content, columns: places } = await written("csv", signal);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(content);
  const delimiter = delimiterOf(text);
  const mark = text.startsWith("\ufeff") ? "\ufeff" : "";
  const [header, ...all] = parse(text.slice(mark.length), delimiter);
  all.forEach((record, index) => {
    const changes = answers.changesOf(index);
    for (const [name, at] of places) {
      if (changes[name] !== undefined) record[at - 1] = quote(changes[name], delimiter);
    }
  });
  const lineEnd = /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
  const records = isOpenOnly ? all.filter((_, index) => answers.isOpen(index)) : all;
  // Cells that were copied have tabs between them, which no spreadsheet expects in a CSV file.
  const table = mark + join([header, ...records], sent.name ? delimiter : ",", lineEnd);
  save(new Blob([table], { type: "text/csv" }), `-${words.ending}.csv`, sent.name);
}

// Copies the outcome, the key and the place of each row, to be pasted beside the first one: the rows of a sheet keep their
// distances, and a key is a formula of a text, or it would lose its zeros.
export async function copy() {
  const lines = [];
  for (const answer of answers.answers) {
    const at = sent.type === XLSX ? answer.number - answers.answers[0].number : lines.length;
    const { place } = answers.stateOf(answer);
    lines[at] = [answers.outcomeInFile(answer), place ? `="${place.cvegeo}"` : "", place?.label ?? ""].join("\t");
  }
  await navigator.clipboard.writeText(Array.from(lines, (line) => line ?? "").join("\n"));
  progress.textContent = words.copied;
  byId("decided").textContent = words.copied;
}

// Returns the last delimiter of the header: the name of the answer's last column has none in it.
function delimiterOf(text) {
  const [header] = text.match(/^(?:[^"\r\n]|"[^"]*")*/);
  return header.match(/[,;\t|](?=[^,;\t|]*$)/)[0];
}

function save(content, ending, name = "") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `${name.replace(/\.[^.]*$/, "") || "localidades"}${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
