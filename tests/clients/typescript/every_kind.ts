// Reads a service with types that were generated from its document, and prints what it found.

import createClient from "openapi-fetch";
import type { components, operations, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });

function held<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("The service does not answer as its document says.");
  return value;
}

const list = "/api/census/localidades/";
const page = held((await client.GET(list)).data);
const first: components["schemas"]["Locality"] = held(page.results[0]);
const chosen = held((await client.GET(list, { params: { query: { municipio_id: String(first.municipio_id) } } })).data);
const detail = held((await client.GET("/api/census/localidades/{id}/", { params: { path: { id: first.id } } })).data);
const found = held((await client.GET("/api/census/localidades/suggest/", { params: { query: { q: "aguas" } } })).data);
const suggestion = held(found.results[0]);
const match: "key" | "label" | "exact" | "seat" | "everyday" | "former" | "prefix" | "words" | "near" =
  suggestion.match;
const changes = held(
  (
    await client.GET("/api/census/releases/{name}/changes/", {
      params: { path: { name: "2020-01" }, query: { since: "2020-01" } },
    })
  ).data,
);
const matched = held(
  (
    await client.POST("/api/census/localidades/match/", {
      body: { rows: [{ nombre: first.nombre, estado: "Aguascalientes" }] },
    })
  ).data,
);
const language: components["schemas"]["Language"] = "es";
const format: components["schemas"]["Format"] = "json";
const index = held((await client.GET("/api/census/", { params: { query: { lang: language, format } } })).data);
const problem = held((await client.GET(list, { params: { query: { page: page.total_pages + 1 } } })).error);

// The compiler knows what is not there: none of the types above is `any`.
// @ts-expect-error
void first.name;
// @ts-expect-error
void ({ municipality: 1001 } satisfies operations["list_localities"]["parameters"]["query"]);
// @ts-expect-error
void (detail.latitud satisfies number);
// @ts-expect-error
void problem.titulo;

console.log(
  JSON.stringify({
    quantity: page.quantity,
    first: first.nombre,
    chosen: chosen.results.map((locality) => locality.nombre),
    cvegeo: detail.cvegeo,
    municipio: detail.municipio.nombre,
    poblacion: detail.poblacion,
    suggestion: suggestion.label,
    match,
    problem: problem.title,
    changes: changes.quantity,
    matched: matched.results[0]?.cvegeo,
    localidades: index.totals.localidades,
  }),
);
