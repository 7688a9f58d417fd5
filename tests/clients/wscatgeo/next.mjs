// L: a route of Next.js that fills a select, and names the place that somebody chose: `node next.mjs SERVICE`.
const base = `${process.argv[2]}/wscatgeo/v2/localidades`;

async function read(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`the service answers ${answer.status}`);
  const { datos } = await answer.json();
  return Array.isArray(datos) ? datos.map(({ cve_loc, nomgeo }) => ({ cve_loc, nomgeo })) : [];
}

const listed = await read(`${base}/01/001`);
const [chosen] = await read(`${base}/010010004`);
const unknown = await read(`${base}/01/999`);
console.log(JSON.stringify({ listed, chosen, unknown }));
