/** The elements in JSX: `import type {} from "localidad-field/react"`. */
import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { LocalidadCascada } from "./localidad-cascada.js";
import type { LocalidadField } from "./localidad-field.js";

type Props<Element, Name extends keyof Element> = DetailedHTMLProps<HTMLAttributes<Element>, Element> &
  Partial<Pick<Element, Name>> & { value?: string | number | null };
type OfBoth = "required" | "disabled" | "release" | "service";

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "localidad-field": Props<
        LocalidadField,
        OfBoth | "name" | "kind" | "estado" | "municipio" | "placeholder" | "label" | "readOnly"
      >;
      "localidad-cascada": Props<LocalidadCascada, OfBoth>;
    }
  }
}
