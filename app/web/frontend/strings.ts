/** Translated texts. They are in the page from the server (`templates/strings.html`), in the page's language. */

const FIGURES = new Map<number, Intl.NumberFormat>();
let words: Record<string, string> | null = null;

export type Values = Record<string, string | number>;

/** Adds texts that the page does not have, because few of its readers need them. */
export function addTexts(texts: Record<string, string>): void {
  words = { ...read(), ...texts };
}

/** The text `key`, with its `{names}` filled in. */
export function say(key: string, values: Values = {}): string {
  return fill(read()[key] ?? key, values);
}

function read(): Record<string, string> {
  words ??= JSON.parse(document.getElementById("strings")?.textContent ?? "{}") as Record<string, string>;
  return words;
}

/** The text `key` for `count` things: `key.one` or `key.other`. */
export function sayCount(key: string, count: number, values: Values = {}): string {
  return say(`${key}.${count === 1 ? "one" : "other"}`, { count: localizedNumber(count), ...values });
}

export function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A number in the format of the page's language. */
export function localizedNumber(value: number, digits = 0): string {
  let format = FIGURES.get(digits);
  if (!format) {
    format = new Intl.NumberFormat(language(), { maximumFractionDigits: digits });
    FIGURES.set(digits, format);
  }
  return format.format(value);
}

export function language(): string {
  return document.documentElement.lang || "en";
}
