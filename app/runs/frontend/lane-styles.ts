/** The style sheet of lanes, adopted by the document with the first lane. */

import css from "./lanes.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);
