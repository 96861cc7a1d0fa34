/** The script of every page. Small: the editor comes later, in a chunk of its own. */

import htmx from "htmx.org";
import { setUpAccount } from "./account";
import { setUpAccountStorage } from "./account-storage";
import { setUpBeatAnimation } from "./beat-animation";
import { setUpDoubleSubmitGuard } from "./double-submit";
import { setUpFeedback } from "./feedback";
import { setUpCells } from "./lesson";
import { setUpCommentsLoader } from "./load-comments";
import { setUpFormulas, setUpLanguages, setUpOutline, setUpRail, setUpScrollers, setUpTheme } from "./page";
import { setUpProgressHeader } from "./progress-header";

// A refused or failed fragment leaves what is on the page: the session card asks again by itself.
Object.assign(htmx.config, { noSwap: [204, 304, "4xx", "5xx"] });

setUpAccountStorage(); // before anything reads what this browser keeps
setUpTheme();
setUpLanguages();
setUpOutline();
setUpRail();
setUpScrollers();
setUpFormulas();
setUpBeatAnimation();
setUpProgressHeader();
setUpCells();
setUpAccount();
setUpCommentsLoader();
setUpFeedback();
setUpDoubleSubmitGuard();
