/** Draws a figure of Plotly, with the build that evaluates no strings as code. */

import Plotly from "plotly.js-strict-dist-min";

import { drawPlot, type Theme } from "./plot-document";

interface Figure {
  data?: unknown[];
  layout?: Record<string, unknown>;
  frames?: unknown[];
}

const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["toImage"] };

drawPlot<Figure>(({ data = [], layout = {}, frames = [] }, place, theme) => {
  if (typeof layout["width"] === "number" && layout["width"] > place.clientWidth) delete layout["width"];
  return Plotly.newPlot(place, { data, layout: themed(layout, theme), frames, config: CONFIG });
});

/** The layout with the page's colors in place of its template's; colors that the figure itself chose stay. */
function themed(layout: Record<string, unknown>, { ink, muted, line, paper }: Theme): Record<string, unknown> {
  const template = (layout["template"] ?? {}) as { layout?: Record<string, unknown> };
  const axis = { gridcolor: line, linecolor: muted, zerolinecolor: line };
  const colors = {
    paper_bgcolor: paper,
    plot_bgcolor: paper,
    font: { ...(template.layout?.["font"] as object), color: ink, family: "system-ui, sans-serif" },
    xaxis: { ...(template.layout?.["xaxis"] as object), ...axis },
    yaxis: { ...(template.layout?.["yaxis"] as object), ...axis },
  };
  return { ...layout, template: { ...template, layout: { ...template.layout, ...colors } } };
}
