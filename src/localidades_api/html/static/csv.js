// CSV as texts: cells keep their quotes, so that a cell that nobody changes is written as it came.

export const DELIMITERS = [",", ";", "\t", "|"]; // those that the service reads

export function parse(text, delimiter) {
  const end = delimiter === "|" ? "\\|" : delimiter;
  const cell = new RegExp(`("[^"]*(?:""[^"]*)*"|[^${end}\\r\\n]*)(${end}|\\r?\\n|\\r|$)`, "y");
  const records = [];
  let record = [];
  while (cell.lastIndex < text.length) {
    const [, value, stop] = cell.exec(text);
    record.push(value);
    if (stop === delimiter && cell.lastIndex < text.length) continue;
    if (stop === delimiter) record.push("");
    records.push(record);
    record = [];
  }
  return records;
}

export const unquote = (cell) => (/^"[^]*"$/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell);

export const quote = (text, delimiter) =>
  text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

// Takes cells to another delimiter.
export const join = (records, delimiter, lineEnd) =>
  records.map((record) =>
    record.map((cell) => (cell.startsWith('"') ? cell : quote(cell, delimiter))).join(delimiter) + lineEnd).join("");

// Old spreadsheets write windows-1252.
export function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }); // it may end within a character
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
