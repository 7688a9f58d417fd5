/** A place that was chosen; docs/reference/parameters.md of localidades-api describes its members. */
export interface LocalidadPlace {
  kind: "localidad" | "municipio" | "estado";
  id: number;
  /** The official key with its zeros: nine digits, five for a municipio, two for an estado. */
  cvegeo: string;
  municipio_id: number | null;
  clave: string;
  nombre: string;
  /** Name, municipio and estado. */
  label: string;
  /** The name that was recognized, if it is not `nombre`. */
  otro_nombre: string | null;
  poblacion: number | null;
  latitud: number | null;
  longitud: number | null;
}

/** What every field of a form has. */
export interface FormField {
  required: boolean;
  disabled: boolean;
  /** The release of the catalogue; the current one if empty. */
  release: string;
  /** The address of the service; by default the one that the script is from. */
  service: string;
  readonly form: HTMLFormElement | null;
  readonly type: string;
  readonly labels: NodeList;
  readonly validity: ValidityState;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
  /** An error of the page; the field is invalid until it is set to "". */
  setCustomValidity(error: string): void;
}

/** `<localidad-field>`: `input` and `change` say that `value` has changed. */
export class LocalidadField extends HTMLElement {
  name: string;
  /** `localidad` (the default), `municipio`, `estado`, or several, separated by commas. */
  kind: string;
  /** Suggest only places of this estado. */
  estado: string;
  /** Suggest only places of this municipio. */
  municipio: string;
  placeholder: string;
  label: string;
  /** As of other fields; the attribute is `readonly`. */
  readOnly: boolean;
  /** The official key, or nothing. An id, which lacks the zero in front, becomes the key. */
  get value(): string;
  set value(key: string | number | null | undefined);
  readonly place: LocalidadPlace | null;
}

export interface LocalidadField extends FormField {}

declare global {
  interface HTMLElementTagNameMap {
    "localidad-field": LocalidadField;
  }
}
