/** Draws a plot of Vega-Lite, which Altair writes. Its expressions are interpreted, not evaluated as code. */

import { type Config, parse, type Spec, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";

import { drawPlot, type Theme } from "./plot-document";

drawPlot<TopLevelSpec>(async (plot, place, theme) => {
  const { spec } = compile({ background: theme.paper, ...plot });
  const view = new View(parse(spec as Spec, colors(theme), { ast: true }), {
    expr: expressionInterpreter,
    renderer: "svg",
    container: place,
    hover: true,
  });
  await view.runAsync();
});

function colors({ ink, muted, line }: Theme): Config {
  return {
    title: { color: ink, subtitleColor: muted },
    style: { "guide-label": { fill: muted }, "guide-title": { fill: ink }, "group-title": { fill: ink } },
    axis: { domainColor: muted, tickColor: muted, gridColor: line },
    view: { stroke: line },
  } as Config;
}
