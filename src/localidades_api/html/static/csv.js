// CSV as texts: cells keep their quotes, so that a cell that nobody changes is written as it came.

const quoted = (without) => `"[^"${without}]*(?:""[^"${without}]*)*"`;

export function parse(text, delimiter, enclosed = quoted("")) {
  const end = delimiter === "|" ? "\\|" : delimiter;
  const cell = new RegExp(`(${enclosed}|[^${end}\\r\\n]*)(${end}|\\r?\\n|\\r|$)`, "y");
  const records = [];
  let record = [];
  while (cell.lastIndex < text.length) {
    const [, value, stop] = /** @type {RegExpExecArray} */ (cell.exec(text));
    record.push(value);
    if (stop === delimiter && cell.lastIndex < text.length) continue;
    if (stop === delimiter) record.push("");
    records.push(record);
    record = [];
  }
  return records;
}

export const quote = (text, delimiter) =>
  text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

// Takes cells to another delimiter.
export const join = (records, delimiter, lineEnd) =>
  records.map((record) =>
    record.map((cell) => (cell.startsWith('"') ? cell : quote(cell, delimiter))).join(delimiter) + lineEnd).join("");

const DELIMITERS = [",", ";", "\t", "|"]; // those that the service reads

// Returns the delimiter of a text: a tab between cells that were copied, or what its first line has most of.
export function delimiterOf(text) {
  const [line = ""] = text.match(/[^\r\n]+/) ?? [];
  if (line.includes("\t")) return "\t";
  const amount = (delimiter) => line.split(delimiter).length;
  return DELIMITERS.reduce((best, one) => (amount(one) > amount(best) ? one : best));
}

// Returns what was pasted as CSV that any program reads. A spreadsheet encloses a copied cell in quotes only for a tab, a
// line end or a quote in it; other quotes are text, even one that is never closed. A cell with both tabs and line ends is
// rather two, each with such a quote.
export function csvOfPasted(text) {
  if (!text.includes('"')) return text;
  const delimiter = delimiterOf(text);
  const isCopied = delimiter === "\t";
  const records = parse(text, delimiter, isCopied ? `${quoted("\t")}|${quoted("\\r\\n")}` : undefined);
  const texts = records.map((record) => record.map((cell) => quote(textOf(cell, isCopied), delimiter)));
  return texts.map((record) => `${record.join(delimiter)}\n`).join("");
}

function textOf(cell, isCopied) {
  const [, inner] = cell.match(/^"([^"]*(?:""[^"]*)*)"$/) ?? [];
  if (inner === undefined || (isCopied && !/\t|[\r\n]|""/.test(inner))) return cell;
  return inner.replaceAll('""', '"');
}

// Returns the beginning of a text up to a line end that is not within quotes.
export function cut(text) {
  const lines = text.split("\n");
  lines.pop();
  let isOpen = false;
  let [whole, at] = [0, 0];
  for (const line of lines) {
    at += line.length + 1;
    if (line.split('"').length % 2 === 0) isOpen = !isOpen;
    if (!isOpen) whole = at;
  }
  return text.slice(0, whole || at || text.length);
}
