/** The style of lanes: adopted by the document when the first of them is there. */

import css from "./lanes.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);
