import type { FormField, LocalidadPlace } from "./localidad-field.js";

/** `<localidad-cascada>`: the names of its three keys are `name-estado`, `name-municipio` and `name-localidad`. */
export class LocalidadCascada extends HTMLElement implements FormField {
  /** The longest key that is chosen: of a locality, a municipio or an estado. */
  get value(): string;
  set value(key: string | null | undefined);
  readonly place: LocalidadPlace | null;
  required: boolean;
  disabled: boolean;
  release: string;
  service: string;
  readonly form: HTMLFormElement | null;
  readonly type: string;
  readonly labels: NodeList;
  readonly validity: ValidityState;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
}

declare global {
  interface HTMLElementTagNameMap {
    "localidad-cascada": LocalidadCascada;
  }
}
