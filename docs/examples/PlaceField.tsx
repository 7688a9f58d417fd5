// A field of a form for a locality: people type, choose, and the form sends the official key as `name`.
import createClient from "openapi-fetch";
import { useEffect, useState } from "react";
import type { components, paths } from "./schema.js";

type Place = components["schemas"]["Suggestion"];
const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8000" });
const NOTHING = { places: [] as Place[], fault: "" };

/** The places that a text may mean, the likeliest first; a request for each pause, not for each letter. */
export function useSuggestions(text: string, limit = 8) {
  const [answer, setAnswer] = useState(NOTHING);
  const q = text.trim();
  useEffect(() => {
    if (!q) return;
    const request = new AbortController(); // a slow answer never replaces a newer one
    const { signal } = request;
    const pause = setTimeout(async () => {
      const query = { params: { query: { q, limit } }, signal };
      const { data, error } = await client
        .GET("/api/census/localidades/suggest/", query)
        .catch((fault: Error) => ({ data: undefined, error: { detail: fault.message } }));
      if (!signal.aborted) setAnswer({ places: data?.results ?? [], fault: error?.detail ?? "" });
    }, 150); // milliseconds
    return () => (clearTimeout(pause), request.abort());
  }, [q, limit]);
  return q ? answer : NOTHING;
}

export function PlaceField({ name }: { name: string }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<Place>();
  const { places, fault } = useSuggestions(chosen ? "" : text);
  return (
    <div>
      <input
        aria-label="Localidad"
        value={chosen?.label ?? text}
        onChange={(event) => (setChosen(undefined), setText(event.target.value))}
      />
      <input type="hidden" name={name} value={chosen?.cvegeo ?? ""} />
      <ul>
        {places.map((place) => (
          <li key={place.cvegeo}>
            <button type="button" onClick={() => setChosen(place)}>{place.label}</button>
          </li>
        ))}
      </ul>
      <p role="status">{fault}</p>
    </div>
  );
}
