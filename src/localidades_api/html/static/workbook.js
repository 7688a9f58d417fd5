// Changes the answers in a workbook that the service has written: its sheet is the last file of the zip, each row ends
// with the cells of its answer, and the first of these is never empty (APPNOTE 4.3, ECMA-376 part 1, 18.3.1.4).

export const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
export const isWorkbook = (file) => file !== undefined && (file.type === XLSX || /\.xlsx$/i.test(file.name));

const [DEFLATE, END, HEADER] = ["deflate-raw", 22, 46]; // a method, and bytes of records of the zip's directory
const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

// Returns the workbook with other texts in the cells of answers: `changesOf(index)` has those of a row by column.
export async function change(workbook, changesOf) {
  const view = new DataView(workbook);
  const end = view.byteLength - END; // the service writes no comment
  const [count, size, start] = [view.getUint16(end + 10, true), view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  let last = start;
  for (let passed = 1; passed < count; passed += 1) {
    last += HEADER + [28, 30, 32].reduce((sum, at) => sum + view.getUint16(last + at, true), 0);
  }
  const local = view.getUint32(last + 42, true);
  const data = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const packed = workbook.slice(data, data + view.getUint32(last + 20, true));
  const sheet = new TextDecoder().decode(await through(packed, new DecompressionStream(DEFLATE)));
  const written = new TextEncoder().encode(changeRows(sheet, changesOf));
  const repacked = await through(written, new CompressionStream(DEFLATE));
  const sizes = [crc(written), repacked.byteLength, written.byteLength];
  const [head, directory, tail] = [workbook.slice(local, data), workbook.slice(start, end), workbook.slice(end)];
  sizes.forEach((value, at) => {
    new DataView(directory).setUint32(last - start + 16 + 4 * at, value, true);
    new DataView(head).setUint32(14 + 4 * at, value, true);
  });
  for (const [record, at] of [[head, 6], [directory, last - start + 8]]) {
    const flags = new DataView(record);
    flags.setUint16(at, flags.getUint16(at, true) & ~8, true); // the sizes stand before the data
  }
  new DataView(tail).setUint32(16, data + repacked.byteLength, true);
  return new Blob([workbook.slice(0, local), head, repacked, directory, tail], { type: XLSX });
}

function changeRows(sheet, changesOf) {
  const header = [...sheet.matchAll(/<(\w+:|)c r="([A-Z]+)\d+"[^>]*><\1is><\1t>match\d*_outcome<.*?<\/\1row>/gs)].pop();
  const [row, tag, first] = header;
  const names = new Map([...row.matchAll(/ r="([A-Z]+)\d+".*?>match\d*_(\w+)</gs)].map(([, letters, name]) => [letters, name]));
  const start = header.index + row.length;
  const answer = new RegExp(`<${tag}c r="${first}(\\d+)" t="inlineStr">.*?(?=</${tag}row>)`, "gs");
  let index = 0;
  const rows = sheet.slice(start).replace(answer, (cells, number) => {
    const changes = changesOf(index++);
    if (!Object.keys(changes).length) return cells;
    const found = cells.matchAll(new RegExp(`<${tag}c r="([A-Z]+)\\d+".*?</${tag}c>`, "gs"));
    const old = new Map([...found].map(([cell, letters]) => [letters, cell]));
    return [...names].map(([letters, name]) => {
      if (changes[name] === undefined) return old.get(letters) ?? "";
      return drawCell(tag, `${letters}${number}`, changes[name], name === "score");
    }).join("");
  });
  return sheet.slice(0, start) + rows;
}

function drawCell(tag, at, value, isNumber) {
  if (value === "") return "";
  if (isNumber) return `<${tag}c r="${at}"><${tag}v>${value}</${tag}v></${tag}c>`;
  const text = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<${tag}c r="${at}" t="inlineStr"><${tag}is><${tag}t>${text}</${tag}t></${tag}is></${tag}c>`;
}

// CRC-32 of zip and gzip (RFC 1952 §8).
function crc(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, value) => {
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
    return value;
  });
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}
