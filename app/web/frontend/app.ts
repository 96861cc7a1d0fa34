/** The script of every page. Small: the editor comes later, in a chunk of its own. */

import htmx from "htmx.org";

import { setUpAccountStorage } from "./account-storage";
import { setUpAccount } from "./account";
import { setUpCells } from "./lesson";
import { setUpStanding } from "./standing";
import { setUpFeedback } from "./feedback";
import { setUpTalk } from "./talk";
import { setUpBeat } from "./beat";
import { setUpOnce } from "./once";
import { setUpFormulas, setUpLanguages, setUpOutline, setUpRail, setUpScrollers, setUpTheme } from "./page";

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
