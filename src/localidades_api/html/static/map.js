// The map of the country: search, colours, filters, and the place that is chosen, all kept in the address.
import { collection, COUNTRY, createMap, legend, mapStyle, OUTLINED } from "./map_style.js";
import { element, isDark, list } from "./page.js";

const page = /** @type {HTMLElement & { dataset: Record<string, string> }} */ (document.getElementById("map"));
const at = (selector) => page.querySelector(selector);
const { places: resource, release, detail, borders, municipios } = page.dataset; // the last two where an extension has them
const told = at("#told");
const bounds = JSON.parse(page.dataset.bounds);
const filters = JSON.parse(page.dataset.filters);
const estados = JSON.parse(page.dataset.estados);
const COLORS = [...at("#color").options].map((option) => option.value);
// Not by their TileJSON, whose addresses have the host and the scheme that a proxy may have told the service.
const TILES = { tiles: [location.origin + page.dataset.tiles], maxzoom: Number(page.dataset.maxzoom) };
const AROUND = [[-170, -30], [-35, 66]]; // how far the map can be moved
const CLOSE = 11; // zoom
const FEW = 6; // outlines that are asked for one by one: a browser sends six requests at once
const FINGER = 9; // pixels around a point that count as on it
const still = matchMedia("(prefers-reduced-motion: reduce)");

// The part of the address after `#`: MapLibre keeps `map` there, zoom and centre; the rest is ours.
const fragment = () => new URLSearchParams(location.hash.slice(1));

function keep(name, value) {
  const kept = fragment();
  if (value) kept.set(name, value);
  else kept.delete(name);
  const text = decodeURIComponent(kept.toString());
  history.replaceState(history.state, "", text ? `#${text}` : location.pathname + location.search);
}

class MapPage {
  constructor(library) {
    this.color = COLORS[0];
    this.selected = null;
    this.around = null; // the outline of the municipio that is chosen, or whose place is
    this.known = {}; // outlines by municipio, or on their way
    this.outlined = null; // the view that they are of
    this.outlines = []; // features
    this.named = {}; // by estado, whether names of municipios are known or on their way
    this.names = new Map();
    this.readChoices();
    const box = bounds.length ? bounds : COUNTRY;
    this.whole = [box.slice(0, 2), box.slice(2)];
    this.map = createMap(library, document.getElementsByTagName("h1")[0].textContent, ["places", "others"], {
      container: "ground", style: this.style(), bounds: this.whole, fitBoundsOptions: this.fitting(),
      hash: "map", maxBounds: AROUND, fadeDuration: still.matches ? 0 : 200,
    });
    this.hasStyle = false; // MapLibre can't compare a style with one that is not loaded, and says so on the console
    this.map.once("style.load", () => { this.hasStyle = true; });
    const scale = new library.ScaleControl({ maxWidth: 96, unit: "metric" });
    at("#ground").after(scale.onAdd(this.map));
    this.library = library;
    this.listen();
    this.readPlace();
  }

  // Beside what lies upon the map, where there is room for that: MapLibre complains of padding without.
  fitting() {
    const { clientWidth: width, clientHeight: height } = page;
    /** @type {number | { left: number, right: number, top: number, bottom: number }} */
    let padding = 12;
    if (width > 800) padding = { left: 40, right: 205, top: 110, bottom: 30 };
    else if (height > 260) padding = { left: 30, right: 64, top: 110, bottom: 70 };
    return { padding, maxZoom: 12 };
  }

  style() {
    const { color, outlines, marked } = this;
    return mapStyle({ tiles: TILES, dark: isDark(), color, estados, filters, outlines, marked });
  }

  restyle() {
    this.map.setStyle(this.style(), { diff: this.hasStyle });
    this.paintLegend();
  }

  paintLegend() {
    at("#color").value = this.color;
    /** @type {NodeListOf<HTMLUListElement>} */
    const lists = page.querySelectorAll(".legend ul");
    for (const list of lists) {
      list.hidden = list.dataset.color !== this.color;
      const entries = [...list.querySelectorAll("li")];
      const colors = legend(isDark(), list.dataset.color, entries.map((entry) => Number(entry.dataset.id)));
      entries.forEach((entry, index) => entry.style.setProperty("--swatch", colors[index]));
    }
  }

  listen() {
    const { map } = this;
    map.once("load", () => this.mark());
    map.on("click", (event) => this.click(event));
    map.on("idle", () => {
      this.listVisible();
      this.outline();
    });
    map.on("error", () => (told.textContent = told.dataset.incomplete)); // of a tile
    at("#visible").addEventListener("toggle", () => this.listVisible());
    at("#whole").addEventListener("click", () => map.fitBounds(this.whole, this.fitting()));
    at("#place .close").addEventListener("click", () => this.close());
    page.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented) this.close();
    });
    at("#color").addEventListener("change", (event) => {
      this.color = event.target.value;
      keep("color", this.color === COLORS[0] ? null : this.color);
      this.restyle();
    });
    at("#outlines").addEventListener("change", (event) => {
      keep("outlines", event.target.checked ? null : "none");
      this.outline();
    });
    at("#search").addEventListener("choose", (event) => {
      event.preventDefault();
      this.open(event.detail.id, { fly: true });
    });
    at(".search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(at("#search"));
    });
    document.addEventListener("themechange", () => this.restyle());
    addEventListener("hashchange", () => {
      this.readChoices();
      this.restyle();
      this.outline();
      this.readPlace();
    });
    this.paintLegend();
  }

  readChoices() {
    const color = fragment().get("color");
    this.color = COLORS.includes(color) ? color : COLORS[0];
    at("#outlines").checked = fragment().get("outlines") !== "none";
  }

  readPlace() {
    const id = fragment().get("place");
    if (!/^[0-9]{8,9}$/.test(id ?? "")) this.leave();
    else if (Number(id) !== this.selected?.id) this.open(Number(id), { fly: !fragment().has("map"), focus: false });
  }

  // Who presses Enter without choosing a suggestion means the first; that there is none, the field has said.
  async search({ value }) {
    if (!value.trim()) return;
    const query = new URLSearchParams({ q: value.trim(), limit: "1", format: "json", release });
    const answer = await this.ask(`suggest/?${query}`);
    if (answer?.results.length) this.open(answer.results[0].id, { fly: true });
  }

  // Returns an answer; null if it failed, which is shown, or if something else has been asked or closed meanwhile.
  async ask(path) {
    this.asked?.abort();
    const { signal } = (this.asked = new AbortController());
    told.textContent = "";
    try {
      const answer = await fetch(`${resource}${path}`, { signal });
      if (!answer.ok) throw new Error(String(answer.status));
      return await answer.json();
    } catch (error) {
      if (error.name !== "AbortError") told.textContent = told.dataset.missing;
      return null;
    }
  }

  click({ point: { x, y }, lngLat }) {
    const found = this.map.queryRenderedFeatures([[x - FINGER, y - FINGER], [x + FINGER, y + FINGER]],
                                                 { layers: ["places", "others"] });
    const distance = (feature) => {
      const point = this.map.project(feature.geometry.coordinates);
      return Math.hypot(point.x - x, point.y - y);
    };
    const [nearest] = found.toSorted((one, other) => distance(one) - distance(other));
    if (nearest) this.open(nearest.id);
    else {
      this.close();
      if (borders) this.locate(lngLat);
    }
  }

  // Offers the municipio of a point that is at no place.
  async locate({ lat, lng }) {
    const query = new URLSearchParams({ lat: lat.toFixed(6), lon: lng.toFixed(6), format: "json", release });
    const answer = await this.ask(`../${page.dataset.at}?${query}`);
    if (!answer) return;
    const [found] = answer.results;
    told.textContent = found ? "" : told.dataset.nowhere;
    if (!found) return;
    const name = [found.nombre, found.estado?.nombre].filter(Boolean).join(", ");
    const href = `${resource}../municipios/${found.id}/${detail}`;
    told.append(found.in_release ? element("a", { href }, name) : name, ` · ${found.cvegeo}`);
    this.surround(found.id);
  }

  // Draws the outline of a municipio, unless something else has been chosen meanwhile.
  async surround(id) {
    this.surrounded = id;
    const outline = id && borders ? await this.outlineOf(id) : null;
    if (this.surrounded !== id) return;
    this.around = outline;
    this.mark();
  }

  // Without its name: `outline` knows a better place for that.
  outlineOf(id) {
    return this.known[id] ?? this.hold(id, fetch(`${resource}../${borders.replace("{id}", id)}`).then(async (answer) => {
      if (answer.status === 404) return null;
      if (!answer.ok) throw new Error(String(answer.status));
      return { ...await answer.json(), properties: {} };
    }));
  }

  // Keeps an outline, or that there is none; one that got no answer is asked for again.
  hold(id, asked) {
    return (this.known[id] = asked.catch(() => {
      delete this.known[id];
      return null;
    }));
  }

  // Those of many municipios, by some of their places, a hundred at once.
  async outlinesAround(places) {
    const [longitudes, latitudes] = [0, 1].map((axis) => places.map(({ geometry }) => geometry.coordinates[axis]));
    const bbox = [Math.min, Math.max].flatMap((side) => [side(...longitudes), side(...latitudes)]);
    const asked = new URLSearchParams({ bbox: bbox.join(), limit: "100", release });
    const found = new Map();
    let page;
    do {
      page = await fetch(`${municipios}?${asked}`)
        .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(String(answer.status)))));
      for (const { id, geometry } of page.features) {
        if (geometry?.type === "MultiPolygon") found.set(id, { type: "Feature", id, geometry, properties: {} });
        asked.set("after", id);
      }
    } while (page.numberReturned === 100);
    return found;
  }

  async open(id, { fly = false, focus = true } = {}) {
    const focused = document.activeElement;
    const place = await this.ask(`${id}/?${new URLSearchParams({ format: "json", release })}`);
    if (!place) return;
    this.show(place, focus && document.activeElement === focused); // unless the focus has moved meanwhile
    if (!this.selected.geometry) told.textContent = told.dataset.none;
    else this.reveal(this.selected.geometry.coordinates, fly);
  }

  // On a telephone the panel covers the lower part of the map: a place goes to the middle of what is left.
  reveal(center, fly) {
    const [ground, panel] = [at("#ground"), at("#place")].map((element) => element.getBoundingClientRect());
    const offset = [0, panel.top > ground.top + ground.height / 3 ? (panel.top - ground.bottom) / 2 : 0];
    const { x, y } = this.map.project(center);
    const isCovered = x + ground.left < panel.right && y + ground.top > panel.top && y + ground.top < panel.bottom;
    if (fly) this.map.flyTo({ center, offset, zoom: Math.max(this.map.getZoom(), CLOSE) });
    else if (isCovered) this.map.easeTo({ center, offset });
  }

  show(place, focus = false) {
    const panel = at("#place");
    panel.hidden = !place;
    this.selected = place && {
      type: "Feature", id: place.id, properties: {},
      geometry: place.latitud === null ? null : { type: "Point", coordinates: [place.longitud, place.latitud] },
    };
    this.around = null;
    this.mark();
    this.surround(place?.municipio_id);
    keep("place", place?.cvegeo);
    if (!place) return;
    const say = (selector, text) => (at(`#place ${selector}`).textContent = text);
    const [kind, count] = [at("#place .kind"), at("#place .population")];
    say("h2", place.nombre);
    say(".area", `${place.municipio.nombre}, ${place.estado.nombre}`);
    say("#place-key", place.cvegeo);
    count.textContent = place.poblacion?.toLocaleString("en") ?? count.dataset.none;
    kind.textContent = kind.dataset[place.ambito?.toLowerCase()] ?? count.dataset.none;
    at("#place .open").href = `${resource}${place.id}/${detail}`;
    if (focus) at("#place h2").focus({ preventScroll: true });
  }

  get marked() {
    return [this.around, this.selected].filter(Boolean);
  }

  // Until the style is loaded there is no source; then this is called again.
  mark() {
    this.map.getSource("selected")?.setData(collection(this.marked));
  }

  close() {
    const isOpen = Boolean(this.selected);
    this.leave();
    if (isOpen) this.map.getCanvas().focus({ preventScroll: true });
  }

  // A place that is still on its way is not wanted any more either.
  leave() {
    this.asked?.abort();
    this.show(null);
  }

  // Once for each view, when its tiles are loaded: `idle` comes then, and again after the outlines are drawn.
  async outline() {
    if (!this.map.loaded()) return;
    const isClose = this.map.getZoom() >= OUTLINED;
    at(".outlines").hidden = !isClose && !borders; // a border, which is drawn at any zoom, needs its credit
    const view = isClose && at("#outlines").checked ? String(this.map.getBounds()) : null;
    if (view === this.outlined) return;
    this.outlined = view;
    if (!view) {
      this.drawOutlines([]);
      return;
    }
    const { outline } = await import("./boundaries.js").catch(() => ({ outline: null }));
    if (view !== this.outlined) return;
    if (!outline) {
      this.outlined = null; // with the next view
      return;
    }
    const places = this.map.querySourceFeatures("around", { sourceLayer: "places" });
    let features = outline(places, this.library);
    const named = features.filter(({ properties }) => properties.municipio_id);
    if (borders) {
      const ids = named.map(({ properties }) => properties.municipio_id);
      const missing = new Set(ids.filter((id) => !(id in this.known)));
      if (municipios && missing.size > FEW) {
        const found = this.outlinesAround(places.filter(({ properties }) => missing.has(properties.municipio_id)));
        for (const id of missing) this.hold(id, found.then((outlines) => outlines.get(id) ?? null));
      }
      const exact = await Promise.all(ids.map((id) => this.outlineOf(id)));
      if (view !== this.outlined) return;
      const known = exact.filter(Boolean);
      if (known.length) features = [...known, ...named]; // else of an estado whose outlines there are not
    }
    this.drawOutlines(features);
    const estados = new Set(named.map(({ properties }) => Math.floor(properties.municipio_id / 1000)));
    await Promise.all([...estados].map((estado) => (this.named[estado] ??= this.askNames(estado))));
    if (view !== this.outlined) return;
    for (const { properties } of named) properties.nombre = this.names.get(properties.municipio_id);
    this.drawOutlines(features);
  }

  drawOutlines(features) {
    this.outlines = features;
    this.map.getSource("outlines").setData(collection(features));
  }

  // Tiles have no names of municipios; those of an estado are asked for when it is seen from close by.
  async askNames(estado_id) {
    const municipios = await list(`${resource}../municipios/`, { estado_id, page_size: "1000", release });
    if (municipios) for (const { id, nombre } of municipios) this.names.set(id, nombre);
    else delete this.named[estado_id];
  }

  // The points for those who don't see or point at them.
  listVisible() {
    if (!at("#visible").open) return;
    const drawn = this.map.queryRenderedFeatures({ layers: ["places"] });
    const found = new Map(drawn.map((feature) => [feature.id, feature])); // a place at an edge is in two tiles
    const size = (feature) => feature.properties.poblacion ?? -1;
    const bySize = (one, other) => size(other) - size(one) || one.id - other.id;
    const largest = [...found.values()].toSorted(bySize).slice(0, 10);
    const listing = at("#visible ol");
    const listed = new Map([...listing.children].map((entry) => [entry.dataset.id, entry]));
    const entries = largest.map((feature) => listed.get(String(feature.id)) ?? this.entry(feature));
    // An entry that stays is not even moved: that would take the focus away, or a click that has begun.
    for (const entry of listed.values()) if (!entries.includes(entry)) entry.remove();
    entries.forEach((entry, index) => {
      if (listing.children[index] !== entry) listing.insertBefore(entry, listing.children[index]);
    });
  }

  entry({ id, properties }) {
    const count = properties.poblacion?.toLocaleString("en") ?? at("#visible").dataset.none;
    const button = element("button", { type: "button", onclick: () => this.open(id) }, properties.nombre);
    const entry = element("li", {}, button, element("span", {}, count));
    entry.dataset.id = id;
    return entry;
  }
}

/** @type {MapPage | null} */
export let shown = null; // the map, for tests, which ask it what it draws

// The drawing takes the place of a map that can't be shown.
function draw() {
  page.hidden = true;
  document.body.classList.remove("full-window");
  document.getElementById("drawing")?.classList.remove("without-scripts");
}

if (document.createElement("canvas").getContext("webgl2")) {
  const library = await import("./maplibre/maplibre-gl.mjs").catch(draw);
  if (library) shown = new MapPage(library);
} else draw();
