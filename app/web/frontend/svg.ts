/** Helpers for SVG elements, and the marks that tell lanes apart without color. */

const SVG = "http://www.w3.org/2000/svg";

export function draw(
  selector: string,
  attributes: Record<string, string | number | null | undefined> = {},
  ...children: (Node | string)[]
): SVGElement {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElementNS(SVG, tag as string) as SVGElement;
  if (classes.length) element.setAttribute("class", classes.filter(Boolean).join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** Eight shapes of radius 1 around the origin, one per lane. */
const SHAPES = [
  "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
  "M-.9-.9h1.8v1.8h-1.8z",
  "M0-1.15L1.1.85H-1.1z",
  "M0-1.25L1.1 0 0 1.25-1.1 0z",
  "M0 1.15L1.1-.85H-1.1z",
  "M-.38-1.1h.76v.72h.72v.76h-.72v.72h-.76v-.72h-.72v-.76h.72z",
  "M-.95-.55V.55L0 1.15.95.55V-.55L0-1.15z",
  "M0-1.2L.36-.37 1.2-.37.55.2.75 1.05 0 .55-.75 1.05-.55.2-1.2-.37-.36-.37z",
];

export function shape(number: number, x: number, y: number, radius: number): SVGElement {
  return draw("path.shape", {
    d: SHAPES[number % SHAPES.length],
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${radius})`,
  });
}
