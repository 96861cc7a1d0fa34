/** The style sheet of the editor, adopted by the document when the editor loads. */

import css from "./editor.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);
