/** Formats a measured value with four significant digits, and with an exponent if it is very large or small. */

import { language } from "./strings";

let format: Intl.NumberFormat | null = null;

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "\u2212inf";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3))
    return value
      .toExponential(2)
      .replace(/\.?0*e\+?/, "e")
      .replaceAll("-", "\u2212");
  format ??= new Intl.NumberFormat(language(), { maximumSignificantDigits: 4 });
  return format.format(value).replace("-", "\u2212");
}
