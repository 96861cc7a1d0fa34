/** The style of charts, bars and pictures: adopted by the document when the first of them is there. */

import css from "./visualizations.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);
