// What the scripts of the pages use that has no types beside it.

declare module "*/maplibre/maplibre-gl.mjs" {
  export * from "maplibre-gl";
}

declare function SwaggerUIBundle(options: object): void;

interface HTMLElementEventMap {
  /** The place that was chosen, of a field with suggestions (page.js). */
  choose: CustomEvent;
}
