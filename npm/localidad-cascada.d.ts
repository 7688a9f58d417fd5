import type { FormField, LocalidadPlace } from "./localidad-field.js";

/** `<localidad-cascada>`: the names of its three keys are `name-estado`, `name-municipio` and `name-localidad`. */
export class LocalidadCascada extends HTMLElement {
  /** The longest key that is chosen: of a locality, a municipio or an estado. An id becomes the key with its zero. */
  get value(): string;
  set value(key: string | number | null | undefined);
  readonly place: LocalidadPlace | null;
}

export interface LocalidadCascada extends FormField {}

declare global {
  interface HTMLElementTagNameMap {
    "localidad-cascada": LocalidadCascada;
  }
}
