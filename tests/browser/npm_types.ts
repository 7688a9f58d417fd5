// The types of the npm package describe its scripts: `tsc` fails where a member has another type, or is missing.
import type * as declaredCascada from "../../npm/localidad-cascada.js";
import type * as declaredField from "../../npm/localidad-field.js";
import type { LocalidadCascada } from "../../src/localidades_api/html/static/localidad-cascada.js";
import type { LocalidadField } from "../../src/localidades_api/html/static/localidad-field.js";

export const typesOf = (field: LocalidadField, cascada: LocalidadCascada): [declaredField.LocalidadField, declaredCascada.LocalidadCascada] =>
  [field, cascada];
