/**
 * A code cell with its buttons, editor, output and status line.
 *
 * The server renders all of it as readable HTML; this makes it interactive. The editor is loaded when it is first used.
 */

import { announce } from "../../web/frontend/announce";
import { make, need } from "../../web/frontend/element";
import { heightRule } from "../../web/frontend/reserved-space";
import { addTexts, say, sayCount } from "../../web/frontend/strings";
import { editorTexts, NetworkError, ResponseError, stop, submit, warmUp } from "./api";
import type { Found } from "./drafts";
import type { CellEditor } from "./editor";
import { codeFrame, lineAfterEdits, lineInCode } from "./error-lines";
import { Output } from "./output";
import { PlainCode } from "./plain-code";
import type { Finished, Frame, Machine, Outcome, Run, Waiting } from "./protocol";
import { differences, type LiveKernels, ProvenanceLine } from "./provenance";
import { retryUntilAccepted } from "./retry";
import type { RunListener, RunManager, TrackedRun } from "./run-manager";
import { ended, type Line, live, running, trouble, waitingLine } from "./status";
import type { FramePlace } from "./traceback";
import type { ErrorItem } from "./transcript";
import { Visualizations } from "./visualizations";

/** Shorter waits are not shown. */
const PATIENCE_MS = 350;

/** What is behind the bars at the bottom of a phone is not in view. */
const BARS = "0px 0px -104px";

/** The words of all editors, on their way. */
let texts: Promise<void> | null = null;

/** Where a cell's code is stored. */
export interface CodeStore {
  /** The code to show instead of the original, if there is any. */
  find(cell: string, original: string): Found | null;
  keep(cell: string, original: string, code: string): void;
}

export class Cell implements RunListener {
  readonly name: string;
  title: string;
  /** The lesson's code; for a cell that the learner has added, the code as the server has it. */
  original: string;
  /** Whether the lesson expects this cell to end with an error, as a starter may. */
  readonly mayFail: boolean;
  /** Called on Shift+Enter, to go to the next cell. */
  onward: () => void = () => undefined;
  /** Returns whether the cell may run now, and tells the learner what to do first if not; `awaited`: others run after it. */
  mayRun: (awaited: boolean) => boolean = () => true;
  /** Called on Alt+Enter, to check the code; null if the cell is not an exercise. */
  check: (() => void) | null = null;
  /** All cells above this one. */
  before: Cell[] = [];
  /** Called to run the cells above first, and then this one. */
  againFromFirst: () => void = () => undefined;
  private code: string;
  private editor: CellEditor | null = null;
  private loading: Promise<CellEditor> | null = null;
  /** The line where the last run failed, until the code changes. */
  private errorLine: number | null = null;
  private undoable: string | null = null;
  private undoWord = say("cell.undoReset");
  private shown: TrackedRun | null = null;
  /** When its run ended (ms): minus infinity if that was before the page loaded, infinity while it is running. */
  private overSince = -Infinity;
  private runningSince = 0;
  private ticking = 0;
  private saving = 0;
  private unsaved = false;
  private warmed = false;
  /** Submissions on their way to the server, which can still be canceled. */
  private readonly pending = new Set<AbortController>();
  private whenDone: ((outcome: Outcome | null) => void)[] = [];
  private readonly lesson: string;
  private readonly plain: PlainCode;
  /** The callbacks of the editor and of the plain code. */
  private readonly whileEditing = {
    changed: (code: string): void => this.edited(code),
    run: (): void => void this.press(),
    runAndMoveOn: (): void => {
      if (this.press()) this.onward();
    },
    check: (): boolean => {
      this.check?.();
      return this.check !== null;
    },
  };
  private readonly output: Output;
  private readonly outputBox: HTMLElement;
  private readonly status: HTMLElement;
  private readonly visualizations: Visualizations;
  private readonly provenance: ProvenanceLine;
  private readonly statusInView = new IntersectionObserver(
    ([entry]) => this.root.toggleAttribute("data-status-in-view", entry?.isIntersecting),
    { rootMargin: BARS },
  );

  constructor(
    readonly root: HTMLElement,
    private readonly runs: RunManager,
    private readonly drafts: CodeStore,
    private readonly kernels: LiveKernels,
  ) {
    this.name = root.dataset.cell ?? "";
    this.lesson = root.dataset.lesson ?? "";
    this.title = root.dataset.title ?? this.name;
    this.plain = new PlainCode(need(root, "pre.code"), { ...this.whileEditing, focused: () => void this.open() });
    this.original = this.plain.pre.textContent;
    this.mayFail = root.hasAttribute("data-may-fail");
    this.code = this.original;
    this.outputBox = need(root, ".output");
    this.status = need(root, ".status");
    this.output = new Output(this.outputBox, this.status, this.title, `${this.name}.txt`, (frame) =>
      this.placeOf(frame),
    );
    this.visualizations = new Visualizations(this.status, this.title, this.name);
    this.provenance = new ProvenanceLine(root, this.title);
    this.listen();
    this.restoreDraft();
  }

  /** The machine for the next run; cells on the same machine share a session. */
  get machine(): Machine {
    return { topology: this.root.dataset.topology ?? "", keras: Number(this.root.dataset.keras) };
  }

  /** The cells above on the same machine, which may define names that this cell uses. */
  get above(): Cell[] {
    const { topology, keras } = this.machine;
    return this.before.filter(({ machine }) => machine.topology === topology && machine.keras === keras);
  }

  // --- actions of the learner --------------------------------------------------------------------------------------

  /** Submits the code. While the server does not respond, keeps trying and says so, until it is stopped. */
  run(): Promise<void> {
    this.warmed = true;
    this.offerFromFirst(false);
    this.keepHeight();
    const code = this.code;
    const machine = this.root.dataset.group ? this.machine : null;
    const hope = new AbortController();
    this.pending.add(hope);
    if (!this.runs.unfinished(this).length) this.say(live(say("state.sending")), "waiting");
    return this.runs.inTurn(() => this.handIn(code, machine, hope));
  }

  private async handIn(code: string, machine: Machine | null, hope: AbortController): Promise<void> {
    const away = (error: ResponseError | NetworkError): void =>
      this.say(
        { ...live(error instanceof ResponseError ? error.message : say("state.serverAway")), tone: "bad" },
        "waiting",
      );
    try {
      const run = await retryUntilAccepted(() => submit(this.lesson, this.name, code, machine), away, hope.signal);
      this.pending.delete(hope);
      if (!run) return;
      this.runs.add(run, this);
      if (hope.signal.aborted) await this.end(run);
    } catch (error) {
      this.pending.delete(hope);
      this.refused(error);
    }
  }

  /** Handles Run: while the cell is running, only announces that. */
  press(): boolean {
    if (this.atWork) {
      announce(say("cell.atWork", { cell: this.title }));
      return false;
    }
    if (!this.mayRun(this.whenDone.length > 0)) return false;
    void this.run();
    return true;
  }

  /** Runs the cell, as soon as it may run, and waits for the end; null if the run was rejected or lost. */
  runToEnd(): Promise<Outcome | null> {
    return new Promise((resolve) => {
      this.whenDone.push(resolve);
      if (this.mayRun(true)) void this.run();
    });
  }

  /** Ends the wait for a cell that has not begun to run. */
  waitNoLonger(): void {
    if (!this.atWork) this.settle(null);
  }

  /** Stops the current run, and cancels what was not submitted yet. */
  async stop(): Promise<void> {
    const [entry] = this.runs.unfinished(this);
    if (this.pending.size) this.giveUp(!entry);
    if (entry) await this.end(entry.run);
  }

  private giveUp(tell: boolean): void {
    for (const hope of this.pending) hope.abort();
    this.pending.clear();
    if (!tell) return;
    const line: Line = { ...live(say("outcome.interrupted")), tone: "plain" };
    this.say(line, "idle");
    announce(`${this.title}: ${line.word}`);
    this.settle(null);
  }

  private async end(run: Run): Promise<void> {
    try {
      await stop(run);
    } catch (error) {
      if (error instanceof ResponseError || error instanceof NetworkError) announce(error.message);
      else throw error;
    }
  }

  /** Restores the lesson's code; the same button brings the learner's text back. */
  reset(): void {
    const next = this.undoable ?? this.original;
    this.undoable = this.undoable === null && this.code !== this.original ? this.code : null;
    this.undoWord = say("cell.undoReset");
    this.setCode(next);
    announce(say(this.undoable === null ? "cell.undone" : "cell.wasReset", { cell: this.title }));
  }

  /** The code as it is now. */
  get currentCode(): string {
    return this.code;
  }

  /** Replaces the code; the reset button brings the learner's text back. */
  replaceCode(code: string): void {
    if (code === this.code) return;
    this.undoable = this.code;
    this.undoWord = say("cell.undo");
    this.setCode(code);
    announce(say("cell.codeReplaced", { cell: this.title }));
    this.edit();
  }

  /** Shows code from another browser of the account. The learner has no text here that it could replace. */
  adoptDraft(code: string, outdated: boolean): void {
    this.undoable = null;
    this.setCode(code, false);
    need(this.root, ".outdated").hidden = !outdated || code === this.original;
  }

  /** Notes that the server has this code of a cell that the learner has added. */
  stored(code: string): void {
    this.original = code;
    this.markEdited();
  }

  /** Restores the code that produced the output; the reset button brings the learner's text back. */
  private showCode(): void {
    if (!this.shown) return;
    this.undoable = this.code;
    this.undoWord = say("cell.undo");
    this.setCode(this.shown.run.code);
    announce(say("cell.codeShown", { cell: this.title }));
    this.root.querySelector(".code-fold")?.setAttribute("open", "");
    this.edit();
  }

  /** Marks the output if this cell would not produce it now. `spoken`: also announce it. */
  compare(spoken = false): void {
    if (!this.shown) return;
    const { run, transcript } = this.shown;
    const gone = transcript.kernel !== null && this.kernels.gone(transcript.kernel, this.overSince);
    const found = differences({ ...run, kernel: transcript.kernel }, this.code, this.machine, gone);
    this.provenance.show(found, run, this.machine, spoken);
  }

  async copy(): Promise<void> {
    const button = need<HTMLButtonElement>(this.root, "[data-action=copy]");
    try {
      await navigator.clipboard.writeText(this.code);
      button.dataset.done = "";
      announce(say("cell.copied"));
      window.setTimeout(() => delete button.dataset.done, 1_600);
    } catch {
      announce(say("cell.notCopied"));
    }
  }

  /** Puts the cursor into the code, and loads the editor if needed. */
  edit(): void {
    if (this.editor) this.editor.focus();
    else this.plain.focus();
  }

  /** Called when another machine was chosen: in the session there, the cells above may not have run. */
  moved(): void {
    this.offerFromFirst(this.above.length > 0);
  }

  // --- callbacks of the run manager --------------------------------------------------------------------------------

  begins(entry: TrackedRun, restored: boolean): void {
    this.shown = entry;
    this.overSince = restored ? -Infinity : Infinity;
    this.runningSince = 0;
    this.markErrorLine(null);
    this.root.classList.add("has-output");
    this.output.show(entry.transcript, entry.run);
    this.visualizations.show(entry.transcript, entry.run.topology);
    this.compare();
    if (restored) return;
    this.root.dataset.run = entry.run.id;
    this.setState("waiting");
    // "Queued" must not flash for a run that starts at once.
    window.setTimeout(() => {
      if (this.shown === entry && !entry.transcript.started && !entry.over && this.root.dataset.state === "waiting") {
        this.say(
          waitingLine({
            state: entry.run.position ? "queued" : "starting",
            position: entry.run.position,
            ahead: entry.run.ahead,
            wait_s: entry.run.wait_s,
          }),
          "waiting",
        );
      }
    }, PATIENCE_MS);
  }

  changed(entry: TrackedRun): void {
    if (this.shown !== entry) return;
    this.output.changed();
    this.visualizations.changed();
    if (entry.transcript.started && !entry.over && !entry.transcript.finished && !this.runningSince) this.tick(entry);
  }

  waits(entry: TrackedRun, waiting: Waiting): void {
    if (this.shown !== entry && this.shown && !this.shown.over) {
      this.tellQueue();
      return;
    }
    if (waiting.state === "running") return;
    if (waiting.state === "reconnecting" || waiting.state === "unstored" || !entry.transcript.started) {
      this.say(waitingLine(waiting), entry.transcript.started ? "running" : "waiting");
    }
  }

  reconnecting(entry: TrackedRun, broken: boolean): void {
    if (this.shown !== entry) return;
    this.root.toggleAttribute("data-reconnecting", broken);
    if (broken) this.say(live(say("state.reconnecting")), entry.transcript.started ? "running" : "waiting");
    else if (this.runningSince) this.say(running(performance.now() - this.runningSince), "running");
  }

  finished(entry: TrackedRun, restored: boolean): void {
    if (this.shown !== entry) return;
    this.rest();
    this.ended(restored);
    const finished = entry.transcript.finished;
    if (!finished) {
      this.settle(null);
      this.say(trouble(say("state.incomplete")), "idle");
      return;
    }
    void this.output.paintAll().then(() => this.conclude(entry, finished, restored));
  }

  private conclude(entry: TrackedRun, finished: Finished, restored: boolean): void {
    if (this.shown !== entry) {
      this.settle(finished.outcome);
      return;
    }
    const { items } = entry.transcript;
    const errors = items.filter((item) => item.kind === "error");
    const error = errors.findLast((item) => !item.event.lane) ?? errors.at(-1);
    const sessionFailed = items.some((item) => item.kind === "notice" && item.event.code === "session-failed");
    const errorName = error?.event.name ?? "";
    const cellsMissing = errorName === "NameError" && (finished.runs_before ?? Infinity) < this.above.length;
    const workerEnded = errorName === "WorkerEnded";
    const line = ended(finished, { errorName, sessionFailed, cellsMissing, workerEnded });
    this.say(line, "finished");
    this.root.dataset.outcome = finished.outcome;
    const sessionLost = ["lost", "crash"].includes(finished.outcome);
    this.offerAgain(sessionLost, sessionLost || cellsMissing || workerEnded);
    const failedAt = error ? this.failedLine([error, ...errors], entry.run.code) : null;
    if (failedAt !== null && this.code === entry.run.code) this.markErrorLine(failedAt, !restored);
    const place = failedAt === null ? "" : say("error.line", { line: failedAt, cell: this.title });
    if (!restored) announce(`${this.title}: ${line.word}`, place, line.advice, this.visualizations.words());
    if (!line.advice) void this.explain(entry, restored);
    this.settle(finished.outcome);
    this.root.dispatchEvent(new CustomEvent("lockstep:finished", { bubbles: true, detail: { restored } }));
  }

  /** Repeats beside the outcome what explains an error in a lane, or that a failure still waits. */
  private async explain(entry: TrackedRun, restored: boolean): Promise<void> {
    const hint = await this.output.hint();
    if (!hint || this.shown !== entry || this.root.dataset.state !== "finished") return;
    need(this.status, ".advice").textContent = hint;
    if (!restored) announce(hint);
  }

  vanished(entry: TrackedRun): void {
    if (this.shown !== entry) return;
    this.rest();
    this.ended(false);
    this.say(trouble(say("outcome.lost"), say("advice.lost")), "finished");
    this.offerAgain(true, true);
    this.settle(null);
  }

  /** The innermost line of this cell in the traceback of the first error or, in a cluster, of those it sums up. */
  private failedLine(errors: ErrorItem[], code: string): number | null {
    const alike = errors.filter(({ event }) => event.name === errors[0]?.event.name);
    for (const frame of alike.flatMap(({ event }) => event.frames.toReversed())) {
      const at = codeFrame(frame.text);
      const line = at && lineInCode(at, code);
      if (line) return line;
    }
    return null;
  }

  /** `load`: load the editor to show the mark; otherwise it appears once the editor is used. */
  private markErrorLine(line: number | null, load = false): void {
    this.errorLine = line;
    this.editor?.markErrorLine(line);
    if (load && !this.editor) void this.open();
  }

  /** The line of a cell that a frame of the shown traceback is in. */
  private placeOf(frame: Frame): FramePlace | null {
    const at = codeFrame(frame.text);
    const kernel = this.shown?.transcript.kernel;
    if (!at || !kernel) return null;
    for (const cell of [this, ...this.before.toReversed()]) {
      const code = cell.codeRunIn(kernel);
      const line = code === null ? null : lineInCode(at, code);
      if (code !== null && line !== null)
        return { line, title: cell.title, rest: at.rest, go: () => void cell.goToLine(line, code) };
    }
    return null;
  }

  /** The code that the kernel ran last for this cell; null if it ran none, or something else is shown. */
  private codeRunIn(kernel: string): string | null {
    return this.shown?.transcript.kernel === kernel ? this.shown.run.code : null;
  }

  /** Shows a line of the code that ran, or where it is now. */
  private async goToLine(line: number, code: string): Promise<void> {
    this.root.querySelector(".code-fold")?.setAttribute("open", "");
    (await this.open()).goToLine(lineAfterEdits(line, code, this.code));
  }

  private ended(restored: boolean): void {
    this.visualizations.ended(restored);
    if (!restored) this.overSince = performance.now();
    this.compare();
  }

  // --- helpers -----------------------------------------------------------------------------------------------------

  private listen(): void {
    this.root.addEventListener("click", (event) => {
      const button = (event.target as Element).closest<HTMLElement>("[data-action]");
      const action = button?.dataset.action;
      if (action === "run") this.press();
      else if (action === "again") this.press();
      else if (action === "again-from-first") this.againFromFirst();
      else if (action === "stop") void this.stop();
      else if (action === "reset") this.reset();
      else if (action === "show-code") this.showCode();
      else if (action === "copy") void this.copy();
    });
    this.root.addEventListener("pointerenter", () => void this.load(), { once: true });
  }

  private load(): Promise<typeof import("./editor")> {
    texts ??= editorTexts().then(addTexts, () => {
      texts = null; // without its words, the editor works; the next one asks for them again
    });
    return Promise.all([import("./editor"), texts]).then(([editor]) => editor);
  }

  private open(): Promise<CellEditor> {
    this.loading ??= this.load().then(async ({ CellEditor }) => {
      await this.plain.ready();
      const about = {
        lesson: this.lesson,
        machine: () => this.machine,
        above: () => this.above.map((cell) => cell.currentCode),
      };
      this.editor = new CellEditor(this.plain, this.code, say("cell.codeOf", { cell: this.title }), about, {
        ...this.whileEditing,
        focused: () => this.warm(),
        escaped: () => announce(say("cell.tabLeaves")),
      });
      this.editor.markErrorLine(this.errorLine);
      return this.editor;
    });
    return this.loading;
  }

  private warm(): void {
    if (this.warmed) return;
    this.warmed = true;
    warmUp(this.lesson, this.machine);
  }

  private edited(code: string): void {
    this.code = code;
    this.errorLine = null;
    this.undoable = null;
    this.markEdited();
    this.compare(true);
    window.clearTimeout(this.saving);
    this.unsaved = true;
    this.saving = window.setTimeout(() => this.keep(), 200);
  }

  /** Saves the draft if it has changed, because another tab may also have a draft of this cell. */
  keep(): void {
    if (!this.unsaved) return;
    this.unsaved = false;
    this.drafts.keep(this.name, this.original, this.code);
  }

  /** Style rules that keep the space of edited code and of output free while the page loads again. */
  space(): string[] {
    const rules: string[] = [];
    const place = need(this.root, ".code-place");
    if (this.root.hasAttribute("data-edited") && place.offsetHeight) {
      const most = `max-height: ${place.offsetHeight}px; overflow: auto;`;
      rules.push(heightRule(`#${this.root.id}:not([data-code-shown]) .code-place`, place, most));
    }
    if (this.shown) {
      const result = `#${this.root.id}:not([data-result-shown]) > .result`;
      rules.push(
        heightRule(result, need(this.root, ".result"), "display: flex; flex-direction: column;"),
        heightRule(`${result} > .output`, this.outputBox),
        `${result} > .status { margin-top: auto; }`,
      );
    }
    return rules;
  }

  /** Called once the earlier runs are known. Without one, or with one that cannot be read, the cell keeps no space. */
  restored(): void {
    if (!this.shown || (this.shown.over && !this.shown.transcript.finished)) this.letHeightGo();
  }

  private setCode(code: string, spoken = true): void {
    this.code = code;
    this.errorLine = null;
    this.unsaved = true;
    this.keep();
    this.show(code);
    this.markEdited();
    this.compare(spoken);
  }

  private show(code: string): void {
    if (this.editor) {
      this.editor.setCode(code);
      return;
    }
    this.plain.set(code);
    void this.open();
  }

  private restoreDraft(): void {
    const found = this.drafts.find(this.name, this.original);
    const shown = (): void => this.root.setAttribute("data-code-shown", "");
    if (!found) {
      shown();
      return;
    }
    this.code = found.code;
    this.markEdited();
    if (found.outdated) need(this.root, ".outdated").hidden = false;
    this.show(found.code);
    void this.open().finally(shown);
  }

  private markEdited(): void {
    const edited = this.code !== this.original;
    this.root.toggleAttribute("data-edited", edited);
    const button = need<HTMLButtonElement>(this.root, "[data-action=reset]");
    button.disabled = !edited && this.undoable === null;
    this.root.toggleAttribute("data-undoable", this.undoable !== null);
    need(button, ".label").textContent = this.undoable === null ? say("cell.reset") : this.undoWord;
    if (!edited) need(this.root, ".outdated").hidden = true;
  }

  private refused(error: unknown): void {
    if (!(error instanceof ResponseError)) throw error;
    this.say(trouble(error.message), "idle");
    announce(`${this.title}: ${error.message}`);
    this.settle(null);
  }

  private settle(outcome: Outcome | null): void {
    for (const resolve of this.whenDone.splice(0)) resolve(outcome);
  }

  private tick({ startedAt }: TrackedRun): void {
    this.runningSince = startedAt ?? performance.now();
    const show = (): void => {
      if (!this.root.hasAttribute("data-reconnecting"))
        this.say(running(performance.now() - this.runningSince), "running");
      this.tellQueue();
    };
    this.setState("running");
    window.clearInterval(this.ticking);
    window.setTimeout(() => this.root.dataset.state === "running" && show(), PATIENCE_MS);
    this.ticking = window.setInterval(show, 1_000);
  }

  private rest(): void {
    window.clearInterval(this.ticking);
    this.runningSince = 0;
    this.root.removeAttribute("data-reconnecting");
    this.output.changed();
    const ended = this.shown;
    const letGo = (): void => {
      if (this.shown === ended) this.letHeightGo();
    };
    void this.visualizations.loaded.then(() => requestAnimationFrame(() => requestAnimationFrame(letGo)));
  }

  /** Keeps the height of the last output until the next one arrives. */
  private keepHeight(): void {
    const height = this.outputBox.offsetHeight;
    if (height > 0) this.outputBox.style.minHeight = `${height}px`;
    this.visualizations.keepHeight();
  }

  private letHeightGo(): void {
    this.root.setAttribute("data-result-shown", "");
    this.outputBox.style.minHeight = "";
    this.visualizations.letHeightGo();
  }

  /** Shows how many more runs of this cell are queued after the current one. */
  private tellQueue(): void {
    const more = this.runs.unfinished(this).length - 1;
    const facts = need(this.status, ".facts");
    facts.querySelector(".more")?.remove();
    if (more > 0) facts.append(make("span.more", {}, sayCount("state.more", more)));
  }

  private say(line: Line, state: string): void {
    this.setState(state);
    this.status.dataset.tone = line.tone;
    need(this.status, ".word").textContent = line.word;
    need(this.status, ".advice").textContent = line.advice;
    need(this.status, ".facts").replaceChildren(...line.facts.map((fact) => make("span", {}, fact)));
    this.linkToOutput(line, state);
    this.offerAgain(false, false);
  }

  /** Beside Run, which stays in view on a phone: how the last run ended, as a link to its output. */
  private linkToOutput({ word, tone }: Line, state: string): void {
    const link = need(this.root, ".last-outcome");
    link.hidden = state !== "finished";
    if (link.hidden) return;
    link.dataset.tone = tone;
    need(link, "b").textContent = word;
    this.statusInView.observe(this.status);
  }

  /** Offers to run this cell again or, if needed, the cells above first. */
  private offerAgain(alone: boolean, withThoseAbove: boolean): void {
    const [one, all] = [need(this.status, "[data-action=again]"), need(this.status, "[data-action=again-from-first]")];
    const pressed = document.activeElement === one || document.activeElement === all;
    one.hidden = !alone;
    all.hidden = !withThoseAbove || this.above.length === 0;
    if (pressed && one.hidden) need(this.root, "[data-action=stop]").focus();
  }

  /** Offers the same below the machine picker, after another machine was chosen. */
  private offerFromFirst(offered: boolean): void {
    const offer = this.root.querySelector<HTMLElement>(".picker-next");
    if (!offer || offer.hidden === !offered) return;
    const pressed = offer.contains(document.activeElement);
    offer.hidden = !offered;
    if (pressed) need(this.root, "[data-action=machine]").focus();
  }

  get atWork(): boolean {
    return this.root.dataset.state === "waiting" || this.root.dataset.state === "running" || this.pending.size > 0;
  }

  /** While the cell is at work, Run says so and can keep the focus; Stop, which goes with the work, hands it on to Run. */
  private setState(state: string): void {
    this.root.dataset.state = state;
    if (state !== "finished") delete this.root.dataset.outcome;
    const { atWork } = this;
    const [run, stop] = [need(this.root, "[data-action=run]"), need(this.root, "[data-action=stop]")];
    if (!atWork && document.activeElement === stop) run.focus();
    stop.toggleAttribute("disabled", !atWork);
    run.setAttribute("aria-disabled", String(atWork));
    const label = say(!atWork ? "cell.run" : state === "running" ? "state.running" : "cell.waits");
    if (need(run, ".label").textContent !== label) need(run, ".label").textContent = label;
  }
}
