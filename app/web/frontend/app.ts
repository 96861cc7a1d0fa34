/** The script of every page. Small: the editor comes later, in a chunk of its own. */

import htmx from "htmx.org";
import { setUpAccount } from "./account";
import { setUpAccountStorage } from "./account-storage";
import { setUpBeat } from "./beat";
import { setUpFeedback } from "./feedback";
import { setUpCells } from "./lesson";
import { setUpOnce } from "./once";
import { setUpFormulas, setUpLanguages, setUpOutline, setUpRail, setUpScrollers, setUpTheme } from "./page";
import { setUpStanding } from "./standing";
import { setUpTalk } from "./talk";

// A refused or failed fragment leaves what is on the page: the session card asks again by itself.
Object.assign(htmx.config, { noSwap: [204, 304, "4xx", "5xx"] });

setUpAccountStorage(); // before anything reads what this browser keeps
setUpTheme();
setUpLanguages();
setUpOutline();
setUpRail();
setUpScrollers();
setUpFormulas();
setUpBeat();
setUpStanding();
setUpCells();
setUpAccount();
setUpTalk();
setUpFeedback();
setUpOnce();
