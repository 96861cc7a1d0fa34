/** The style sheet of charts, progress bars and pictures, adopted by the document with the first of them. */

import css from "./visualizations.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);
