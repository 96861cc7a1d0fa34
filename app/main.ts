/** The script of every page. It stays small: the editor is a separate chunk, loaded later. */

import htmx from "htmx.org";
import { setUpAccount } from "./accounts/frontend/account";
import { setUpAccountStorage } from "./accounts/frontend/account-storage";
import { setUpCommentsLoader } from "./comments/frontend/load-comments";
import { setUpFeedback } from "./feedback/frontend/feedback";
import { setUpCells } from "./lessons/frontend/lesson";
import { setUpMovingDrawings } from "./lessons/frontend/moving-drawing";
import { setUpPlaygroundLoader } from "./playground/frontend/load-playground";
import { setUpProgressHeader } from "./progress/frontend/progress-header";
import { setUpSearch } from "./search/frontend/search";
import { setUpBeatAnimation } from "./web/frontend/beat-animation";
import { setUpDoubleSubmitGuard } from "./web/frontend/double-submit";
import { setUpFragments } from "./web/frontend/fragments";
import {
  setUpFormulas,
  setUpLanguages,
  setUpOutline,
  setUpRail,
  setUpScrollers,
  setUpTheme,
} from "./web/frontend/page";
import { setUpPolling } from "./web/frontend/polling";
import { setUpPresses } from "./web/frontend/press";
import { setUpVisitorRequests } from "./web/frontend/visitor-requests";

// If a fragment fails, the page keeps its content: the session card polls by itself.
Object.assign(htmx.config, { noSwap: [204, 304, "4xx", "5xx"] });

setUpAccountStorage(); // before anything reads the storage
setUpVisitorRequests();
setUpFragments();
setUpPresses();
setUpPolling();
setUpTheme();
setUpLanguages();
setUpOutline();
setUpRail();
setUpScrollers();
setUpFormulas();
setUpMovingDrawings();
setUpBeatAnimation();
setUpProgressHeader();
setUpCells();
setUpAccount();
setUpCommentsLoader();
setUpPlaygroundLoader();
setUpFeedback();
setUpSearch();
setUpDoubleSubmitGuard();

document.dispatchEvent(new Event("lockstep:ready")); // see theme.ts
