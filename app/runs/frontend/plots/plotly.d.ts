/** The part of Plotly that is used; its package has no types. */
declare module "plotly.js-strict-dist-min" {
  const Plotly: { newPlot(place: HTMLElement, figure: Record<string, unknown>): Promise<unknown> };
  export default Plotly;
}
