// The places that are certain or chosen, or the options of a doubt, on a map that is loaded when somebody wants to see it.
import { collection, COUNTRY, createMap, mapStyle, palette } from "./map_style.js";
import { amount, byId, count, say, words } from "./match_texts.js";
import { element, isDark } from "./page.js";

const MOST = 3000; // places
const NAMED = 7; // zoom from which all places have their names
const [details, ground] = [byId("placed"), byId("ground")];
const frame = /** @type {HTMLElement} */ (ground.parentElement);

export class ResultMap {
  constructor(answers) {
    this.answers = answers;
    /** @type {any[]} */
    this.features = []; // what the map shows
    this.loading = null; // the map, once somebody wants to see it
    this.known = new Map(); // places with their coordinates, by key
    /** @type {Map<string, string> | null} */
    this.options = null; // the numbers of the options of a doubt, by key, if the map is within it
    details.hidden = !document.createElement("canvas").getContext("webgl2");
    details.addEventListener("toggle", () => {
      const isOther = details.open && this.options !== null;
      if (isOther) {
        this.options = null;
        details.getElementsByTagName("summary")[0].after(frame);
      }
      this.show({ isOther });
    });
    byId("result").addEventListener("decide", () => this.show());
    byId("result").addEventListener("map", (event) => {
      const { question, options, point } = /** @type {CustomEvent} */ (event).detail;
      this.point = point;
      this.options = new Map(options.map(({ cvegeo }, at) => [cvegeo, String(at + 1)]));
      details.open = false;
      question.querySelector(".on-map").after(frame);
      this.show({ isOther: true });
    });
    document.addEventListener("themechange", () => this.map?.setStyle(this.style()));
  }

  // Draws the places as they are now, if the map is open; nothing if it is called again meanwhile.
  async show({ isOther = false } = {}) {
    const showing = (this.showing = {});
    if (isOther) this.fitted = false;
    if (!details.open && !this.options) return;
    const { options } = this;
    const places = options ?? this.answers.places();
    const wanted = [...places.keys()].slice(0, MOST);
    const [help] = details.getElementsByClassName("help");
    const map = await (this.loading ??= this.load().catch(() => { this.loading = null; })); // another time
    if (!map) {
      help.textContent = words.unreachable;
      return;
    }
    const missing = wanted.filter((key) => !this.known.has(key));
    const found = await this.answers.ask(missing, "cvegeo,nombre,latitud,longitud");
    for (const place of found) this.known.set(place.cvegeo, place);
    if (this.showing !== showing) return;
    const shown = wanted.map((key) => this.known.get(key)).filter((place) => typeof place?.latitud === "number");
    this.features = shown.map(({ cvegeo, nombre, latitud, longitud }) => ({
      type: "Feature", geometry: { type: "Point", coordinates: [longitud, latitud] },
      properties: { cvegeo, nombre: options ? `${places.get(cvegeo)}. ${nombre}` : nombre, said: places.get(cvegeo) },
    }));
    if (options && this.point) {
      const { latitud, longitud } = this.point;
      const properties = { cvegeo: "", nombre: words.rowPoint, said: words.rowPoint };
      this.features.push({ type: "Feature", geometry: { type: "Point", coordinates: [longitud, latitud] }, properties });
    }
    map.getSource("matched")?.setData(collection(this.features));
    map.setLayerZoomRange("matched-names", options ? 0 : NAMED, 24);
    const text = places.size > MOST ? say("firstPlaces", { count: count(MOST) }) : amount(shown.length, "onePlace", "places");
    help.textContent = text;
    map.resize(); // it may be elsewhere
    if (!this.fitted && shown.length) this.fit(map);
  }

  fit(map) {
    this.fitted = true;
    const [x, y] = [0, 1].map((axis) => this.features.map(({ geometry }) => geometry.coordinates[axis]));
    map.fitBounds([Math.min(...x), Math.min(...y), Math.max(...x), Math.max(...y)], { padding: 32, maxZoom: 11, animate: false });
  }

  async load() {
    const library = await import("./maplibre/maplibre-gl.mjs");
    const title = details.getElementsByTagName("summary")[0].textContent;
    const map = createMap(library, title, ["matched"], { container: ground, style: this.style(), bounds: COUNTRY });
    map.scrollZoom.disable(); // the page scrolls
    map.on("click", "matched", ({ features = [] }) => this.tell(features[0].properties));
    await map.once("style.load");
    this.map = map;
    return map;
  }

  /** @param {Record<string, any>} place */
  tell({ cvegeo, nombre, said }) {
    if (!cvegeo) return; // the point of the row
    const link = this.answers.link({ id: Number(cvegeo), cvegeo });
    details.getElementsByClassName("told")[0].replaceChildren(element("strong", {}, said), " → ", nombre, " ", link);
  }

  style() {
    const dark = isDark();
    const { tiles, maxzoom } = ground.dataset;
    const source = { tiles: [`${location.origin}${tiles}${this.answers.release}`], maxzoom: Number(maxzoom) };
    const style = mapStyle({ tiles: source, dark, color: "poblacion", filters: { estado_id: -1 } });
    const names = mapStyle({ tiles: source, dark, color: "poblacion", filters: {} });
    const { text, ground: halo, ring } = palette(dark);
    const layer = (from, id) => from.layers.find((one) => one.id === id);
    style.sources.matched = { type: "geojson", data: collection(this.features) };
    style.layers = [
      ...["ground", "backdrop", "others"].map((id) => layer(style, id)), layer(names, "names"),
      {
        id: "matched", type: "circle", source: "matched",
        paint: {
          "circle-color": ["case", ["==", ["get", "cvegeo"], ""], text, ring], "circle-radius": ["interpolate", ["linear"], ["zoom"], 4, 4, 10, 8],
          "circle-stroke-color": halo, "circle-stroke-width": 1.5,
        },
      },
      {
        id: "matched-names", type: "symbol", source: "matched", minzoom: this.options ? 0 : NAMED,
        layout: {
          "text-field": ["get", "nombre"], "text-font": ["system-ui"], "text-size": 12, "text-variable-anchor": ["left", "right"],
          "text-radial-offset": 0.8, "text-justify": "auto",
        },
        paint: { "text-color": text, "text-halo-color": halo, "text-halo-width": 1.4 },
      },
    ];
    return style;
  }
}
