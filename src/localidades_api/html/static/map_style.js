// What maps share: how they behave, and MapLibre's style for a theme, a choice of colours, filters and the selected place.

/** @type {[number, number, number, number]} */
export const COUNTRY = [-118.5, 14.4, -86.5, 32.8];

// Draws a map that can't be turned, with the page's buttons for its zoom; the points of `layers` can be clicked.
export function createMap(library, title, layers, options) {
  const map = new library.Map({
    minZoom: 2, maxZoom: 15, renderWorldCopies: false, attributionControl: false, dragRotate: false, touchPitch: false,
    pitchWithRotate: false, fadeDuration: 0, locale: { "Map.Title": title }, ...options,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  for (const layer of layers) {
    map.on("mouseenter", layer, () => (map.getCanvas().style.cursor = "pointer"));
    map.on("mouseleave", layer, () => (map.getCanvas().style.cursor = ""));
  }
  document.getElementById("closer")?.addEventListener("click", () => map.zoomIn());
  document.getElementById("farther")?.addEventListener("click", () => map.zoomOut());
  return map;
}

const SIZES = [2500, 15000, 100000, 1000000]; // inhabitants from which a place is drawn larger, and coloured otherwise

// The zoom whose tiles outlines are made of: the first whose tiles have room for every place, but for a few in a hundred.
export const OUTLINED = 10;

const CAPITAL = 9; // the estado that is a city
const ALCALDIAS = 10; // the zoom from which its parts have their own names

const PALETTES = {
  light: {
    ground: "#f6f7f9", line: "#b08ad6", backdrop: "#93a1b0", unknown: "#a5a7aa", text: "#1c2024", soft: "#565e66", ring: "#0b6b5d",
    sizes: ["#3f74a8", "#c08a2d", "#c4641a", "#a8341c", "#6b1024"], kinds: { U: "#b4510f", R: "#3b7a57" },
    estado: (hue) => `hsl(${hue}, 62%, 40%)`,
  },
  dark: {
    ground: "#0c0f14", line: "#7d5fa6", backdrop: "#5d6a85", unknown: "#62656b", text: "#e6e9ec", soft: "#a9b1b9", ring: "#6fd0bb",
    sizes: ["#5b94cc", "#b98f4e", "#e8ab52", "#ffd080", "#fff3d6"], kinds: { U: "#ffc46b", R: "#5fb58a" },
    estado: (hue) => `hsl(${hue}, 65%, 64%)`,
  },
};

// Hues of neighbours, whose keys are often neighbours too, lie a golden angle apart.
const hueOf = (estado) => Math.round((estado * 137.508) % 360);

const population = ["coalesce", ["get", "poblacion"], 0];
/** @param {(number | string)[]} values */
const bySize = ([least, ...more]) => [
  "step", population, least, ...SIZES.flatMap((size, index) => [size, more[index]]),
];

export function palette(dark) {
  return dark ? PALETTES.dark : PALETTES.light;
}

// The colours of the legend, in the order of its entries.
export function legend(dark, color, ids) {
  const { sizes, kinds, estado, unknown } = palette(dark);
  if (color === "ambito") return [kinds.U, kinds.R];
  return color === "estado" ? ids.map((id) => estado(hueOf(id))) : [...sizes.toReversed(), unknown];
}

function colorOf(dark, color) {
  const { sizes, kinds, estado, soft, unknown } = palette(dark);
  if (color === "ambito") return ["match", ["get", "ambito"], "U", kinds.U, "R", kinds.R, soft];
  if (color === "estado") {
    const estados = Array.from({ length: 32 }, (_, index) => index + 1);
    return ["match", ["get", "estado_id"], ...estados.flatMap((id) => [id, estado(hueOf(id))]), soft];
  }
  return ["case", ["has", "poblacion"], bySize(sizes), unknown];
}

function radius(factor = 1) {
  const sizes = (values) => bySize(values.map((value) => value * factor));
  return ["interpolate", ["exponential", 1.3], ["zoom"],
          4, sizes([0.9, 1, 1.5, 2.4, 4.2]), 8, sizes([1.6, 2, 3.2, 5, 8]), 13, sizes([4, 5, 7, 10, 15])];
}

// Inhabitants from which a place is named: at a glance the cities, from close by every place. Names that have no room
// cost as much as those that have.
const named = [
  "step", ["zoom"], 700000, 5, 100000, 6, 50000, 7, 20000, 8, 10000, 9, 5000, 10, 2500, 11, 1000, 12, 200, 13, 0,
];

const chosen = (filters) => ["all", ...Object.entries(filters).map(
  ([name, value]) => ["==", ["get", name], name === "ambito" ? value : Number(value)],
)];

export const collection = (features) => ({ type: "FeatureCollection", features });

const byDensity = (one, two, three, most) => ["match", ["get", "density"], 1, one, 2, two, 3, three, most];

// Names of estados are seen where they are large, and the capital's, which is no locality, down to its alcaldías.
const namedEstados = (estados) => collection(estados.map(([id, nombre, longitud, latitud]) => ({
  type: "Feature", id, properties: { id, nombre }, geometry: { type: "Point", coordinates: [longitud, latitud] },
})));

/** @returns {any} a StyleSpecification: TypeScript takes the arrays that its expressions are put together of for lists */
export function mapStyle({ tiles, dark, color, estados = [], filters, outlines = /** @type {any[]} */ ([]), marked = /** @type {any[]} */ ([]) }) {
  const { ground, line, backdrop, text, soft, ring } = palette(dark);
  const filter = chosen(filters);
  const points = (id, paint, more = {}) => ({
    id, type: "circle", source: "places", "source-layer": "places", paint, ...more,
  });
  return {
    version: 8,
    sources: {
      places: { type: "vector", ...tiles },
      around: { type: "vector", ...tiles, minzoom: OUTLINED, maxzoom: OUTLINED },
      estados: { type: "geojson", data: namedEstados(estados) },
      outlines: { type: "geojson", data: collection(outlines) },
      selected: { type: "geojson", data: collection(marked) },
    },
    layers: [
      { id: "ground", type: "background", paint: { "background-color": ground } },
      {
        id: "backdrop", type: "circle", source: "places", "source-layer": "backdrop",
        paint: {
          "circle-color": backdrop,
          "circle-radius": ["interpolate", ["linear"], ["zoom"], 5, byDensity(0.9, 1.2, 1.5, 1.8), 8, byDensity(1.3, 1.6, 1.9, 2.2)],
          "circle-opacity": ["interpolate", ["linear"], ["zoom"], 5, byDensity(0.35, 0.5, 0.7, 0.9), 8, byDensity(0.6, 0.7, 0.8, 0.9)],
        },
      },
      {
        id: "around", type: "circle", source: "around", "source-layer": "places", minzoom: OUTLINED,
        paint: { "circle-opacity": 0 }, // it loads its tiles, out of which the outlines are made
      },
      {
        id: "outlines", type: "line", source: "outlines", minzoom: OUTLINED, filter: ["has", "of"],
        paint: {
          "line-color": line,
          "line-dasharray": [4, 2], // which no road has
          "line-width": ["match", ["get", "of"], "estado", 2.5, 1],
        },
      },
      {
        id: "exact", type: "line", source: "outlines", minzoom: OUTLINED, filter: ["!", ["has", "of"]],
        paint: { "line-color": line },
      },
      { id: "border", type: "line", source: "selected", paint: { "line-color": ring, "line-width": 2 } },
      points("others", {
        "circle-color": backdrop, "circle-opacity": 0.6, "circle-radius": radius(0.7),
      }, { filter: ["!", filter] }),
      points("glow", {
        "circle-color": colorOf(dark, color), "circle-opacity": dark ? 0.22 : 0.12,
        "circle-radius": radius(3.2), "circle-blur": 1,
      }, { filter: ["all", filter, [">=", population, SIZES[1]]] }),
      points("places", {
        "circle-color": colorOf(dark, color), "circle-opacity": 0.92, "circle-radius": radius(),
        "circle-stroke-color": ground, "circle-stroke-width": ["interpolate", ["linear"], ["zoom"], 6, 0, 10, 0.7],
      }, { filter }),
      {
        id: "municipios", type: "symbol", source: "outlines", minzoom: OUTLINED, filter: ["has", "nombre"],
        layout: {
          "text-field": ["upcase", ["get", "nombre"]], "text-font": ["system-ui"], "text-size": 10.5,
          "text-letter-spacing": 0.15, "text-max-width": 10, "text-padding": 8,
        },
        paint: { "text-color": soft, "text-opacity": 0.75, "text-halo-color": ground, "text-halo-width": 1.4 },
      },
      {
        id: "estados", type: "symbol", source: "estados", minzoom: 4, maxzoom: 7, filter: ["!=", ["get", "id"], CAPITAL],
        layout: {
          "text-field": ["upcase", ["get", "nombre"]], "text-font": ["system-ui"], "text-letter-spacing": 0.12,
          "text-size": ["interpolate", ["linear"], ["zoom"], 4, 8.5, 7, 13], "text-max-width": 8, "text-padding": 4,
        },
        paint: { "text-color": soft, "text-opacity": 0.8, "text-halo-color": ground, "text-halo-width": 1.2 },
      },
      {
        id: "names", type: "symbol", source: "places", "source-layer": "places",
        layout: {
          "text-field": ["get", "nombre"], "text-font": ["system-ui"], "text-max-width": 9,
          "text-size": ["interpolate", ["linear"], ["zoom"],
                        3, bySize([9.5, 10, 10.5, 11.5, 13]), 5.5, bySize([11.5, 12, 13, 14.5, 17])],
          "text-variable-anchor": ["left", "right"], "text-justify": "auto",
          "text-radial-offset": bySize([0, 0, 0, 0.05, 0.15]),
          "text-padding": 8, "symbol-sort-key": ["-", 0, population],
        },
        paint: { "text-color": text, "text-halo-color": ground, "text-halo-width": 1.4 },
        filter: ["all", filter, [">=", population, named],
                 !estados.length || ["step", ["zoom"], ["!=", ["get", "estado_id"], CAPITAL], ALCALDIAS, true]],
      },
      {
        id: "capital", type: "symbol", source: "estados", maxzoom: ALCALDIAS, filter: ["==", ["get", "id"], CAPITAL],
        layout: {
          "text-field": ["get", "nombre"], "text-font": ["bold system-ui"], "text-max-width": 9,
          "text-size": ["interpolate", ["linear"], ["zoom"], 3, 12, 6, 17], "text-allow-overlap": true,
          "text-anchor": "top-right", "text-justify": "right", "text-offset": [-0.4, 0.2],
          "text-padding": ["interpolate", ["linear"], ["zoom"], 4, 24, 8, 4], // no suburb is named beside it
        },
        paint: { "text-color": text, "text-halo-color": ground, "text-halo-width": 1.8 },
      },
      {
        id: "selected", type: "circle", source: "selected", filter: ["==", ["geometry-type"], "Point"],
        paint: {
          "circle-color": ring, "circle-opacity": 0.25, "circle-radius": 11,
          "circle-stroke-color": ring, "circle-stroke-width": 2.5,
        },
      },
    ],
  };
}
