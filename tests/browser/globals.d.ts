// What the scripts of the pages use that has no types beside it.

declare module "*/maplibre/maplibre-gl.mjs" {
  export * from "maplibre-gl";
}

declare function SwaggerUIBundle(options: object): void;

declare const Redoc: { init(document: string | undefined, options: object, place: HTMLElement): void };

interface HTMLElementEventMap {
  /** The place that was chosen, of a field with suggestions (page.js). */
  choose: CustomEvent;
}
