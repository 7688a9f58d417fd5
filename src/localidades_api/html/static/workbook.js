// Changes the answers in a workbook that the service has written: its sheet is the last file of the zip, or the summary
// that counts them follows. Each row below the header ends with the cells of its answer, and the first of these is never empty (APPNOTE 4.3, ECMA-376 part 1,
// 18.3.1.4).

import { XLSX } from "./match_source.js";

// The members of an answer that are numbers in a workbook; a key is text, or it would lose its zeros.
const NUMBERS = new Set(["score", "latitud", "longitud", "altitud", "poblacion", "viviendas", "localidades"]);
const DEFLATE = "deflate-raw";
const [END, HEADER] = [22, 46]; // bytes of records of the zip's directory

// Returns the workbook with other texts in the cells of answers: `changesOf(index)` has those of a row by the member of
// the answer, `columns` where each member is, from 1, and `counts` how many rows have each word for an outcome. The sheet,
// which may have a hundred times the bytes of the file, is never there as a whole.
export async function change(workbook, headerRow, columns, changesOf, counts) {
  const view = new DataView(workbook);
  const end = view.byteLength - END; // the service writes no comment
  const [count, start] = [view.getUint16(end + 10, true), view.getUint32(end + 16, true)];
  const [directory, tail] = [workbook.slice(start, end), workbook.slice(end)];
  const records = [];
  for (let at = start; records.length < count; at += HEADER + [28, 30, 32].reduce((sum, one) => sum + view.getUint16(at + one, true), 0)) records.push(at);
  const hasSummary = view.getUint16(Number(records.at(-1)) + 32, true) > 0; // which alone has a comment
  const changed = records.slice(hasSummary ? -2 : -1);
  let written = view.getUint32(changed[0] + 42, true);
  /** @type {BlobPart[]} */
  const parts = [new Uint8Array(workbook, 0, written)];
  for (const at of changed) {
    const local = view.getUint32(at + 42, true);
    const data = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const packed = new Blob([new Uint8Array(workbook, data, view.getUint32(at + 20, true))]);
    const checksum = new Checksum();
    const part = packed.stream().pipeThrough(new DecompressionStream(DEFLATE)).pipeThrough(new TextDecoderStream())
      .pipeThrough(new TransformStream(at === changed[0] ? new Rows(headerRow, columns, changesOf) : new Counts(counts)))
      .pipeThrough(new TextEncoderStream()).pipeThrough(new TransformStream(checksum))
      .pipeThrough(new CompressionStream(DEFLATE));
    const repacked = await new Response(part).blob();
    const head = workbook.slice(local, data);
    for (const [bytes, record, flags, sizes] of [[head, 0, 6, 14], [directory, at - start, 8, 16]]) {
      const changing = new DataView(bytes, record);
      changing.setUint16(flags, changing.getUint16(flags, true) & ~8, true); // the sizes stand before the data
      [checksum.value, repacked.size, checksum.bytes].forEach((value, index) => changing.setUint32(sizes + 4 * index, value, true));
    }
    new DataView(directory, at - start).setUint32(42, written, true);
    written += head.byteLength + repacked.size;
    parts.push(head, repacked);
  }
  new DataView(tail).setUint32(16, written, true);
  return new Blob([...parts, directory, tail], { type: XLSX });
}

// Changes the values of the summary: a formula counts a word, and the last one the other rows.
class Counts {
  constructor(counts) {
    this.counts = counts;
    this.xml = "";
  }

  transform(piece) {
    this.xml += piece;
  }

  flush(controller) {
    controller.enqueue(this.xml.replace(/((?:,"([^"]*?)\*?"\)|SUM\([^<]*)<\/f><v>)\d+/g,
      (_, before, word = "") => `${before}${this.counts.get(word) ?? 0}`));
  }
}

// Changes the rows of a sheet, whose XML comes in pieces.
class Rows {
  /** @type {string | undefined} */ tag; // what the names of elements have in front
  /** @type {RegExp} */ answer;
  /** @type {RegExp} */ cell;

  constructor(headerRow, columns, changesOf) {
    this.headerRow = headerRow;
    this.changesOf = changesOf;
    this.names = new Map([...columns].map(([name, at]) => [lettersOf(at), name]));
    this.rest = "";
    this.index = 0;
  }

  transform(piece, controller) {
    this.rest += piece;
    this.tag ??= this.rest.match(/<(\w+:|)sheetData/)?.[1];
    if (this.tag === undefined) return;
    const close = `</${this.tag}row>`;
    const at = this.rest.lastIndexOf(close);
    if (at < 0) return;
    const end = at + close.length;
    const [first] = this.names.keys();
    this.answer ??= new RegExp(`<${this.tag}c r="${first}(\\d+)" t="inlineStr">.*?(?=${close})`, "gs");
    this.cell ??= new RegExp(`<${this.tag}c r="([A-Z]+)\\d+".*?</${this.tag}c>`, "gs");
    controller.enqueue(this.changeAnswers(this.rest.slice(0, end)));
    this.rest = this.rest.slice(end);
  }

  flush(controller) {
    controller.enqueue(this.rest);
  }

  changeAnswers(rows) {
    return rows.replace(this.answer, (cells, number) => {
      if (Number(number) <= this.headerRow) return cells;
      const changes = this.changesOf(this.index++);
      if (!Object.keys(changes).length) return cells;
      const old = new Map([...cells.matchAll(this.cell)].map(([cell, letters]) => [letters, cell]));
      return [...this.names].map(([letters, name]) => {
        if (changes[name] === undefined) return old.get(letters) ?? "";
        return drawCell(this.tag, `${letters}${number}`, changes[name], NUMBERS.has(name));
      }).join("");
    });
  }
}

function lettersOf(column) {
  let letters = "";
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  return letters;
}

function drawCell(tag, at, value, isNumber) {
  if (value === "") return "";
  if (isNumber) return `<${tag}c r="${at}"><${tag}v>${value}</${tag}v></${tag}c>`;
  const text = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<${tag}c r="${at}" t="inlineStr"><${tag}is><${tag}t>${text}</${tag}t></${tag}is></${tag}c>`;
}

// CRC-32 of zip and gzip (RFC 1952 §8), of bytes that pass.
class Checksum {
  constructor() {
    this.bytes = 0;
    this.sum = 0xffffffff;
    this.table = Uint32Array.from({ length: 256 }, (_, value) => {
      for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
      return value;
    });
  }

  get value() {
    return (this.sum ^ 0xffffffff) >>> 0;
  }

  transform(bytes, controller) {
    let { sum } = this;
    for (const byte of bytes) sum = this.table[(sum ^ byte) & 255] ^ (sum >>> 8);
    this.sum = sum;
    this.bytes += bytes.length;
    controller.enqueue(bytes);
  }
}
