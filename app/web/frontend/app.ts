/** The script of every page. It stays small: the editor is a separate chunk, loaded later. */

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

// If a fragment fails, the page keeps its content: the session card polls by itself.
Object.assign(htmx.config, { noSwap: [204, 304, "4xx", "5xx"] });

setUpAccountStorage(); // before anything reads the storage
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
