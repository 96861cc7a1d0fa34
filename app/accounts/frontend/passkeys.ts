/** Passkeys: gets a challenge from the server and a response from the device, and sends it back. */

import { ResponseError, responseError, send } from "../../runs/frontend/api";
import { need } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";

interface Descriptor {
  id: string;
  type: PublicKeyCredentialType;
}

/** The server's options, with bytes in base64url. */
interface Asked {
  challenge: string;
  rpId?: string;
  timeout?: number;
  userVerification?: UserVerificationRequirement;
  allowCredentials?: Descriptor[];
}

interface AskedForNew extends Omit<PublicKeyCredentialCreationOptions, "challenge" | "user" | "excludeCredentials"> {
  challenge: string;
  user: { id: string; name: string; displayName: string };
  excludeCredentials?: Descriptor[];
}

/** Error messages for the fields of a form, by name. */
class FieldErrors extends Error {
  constructor(readonly fields: Record<string, string>) {
    super();
  }
}

export function setUpPasskeys(): void {
  const entry = document.querySelector<HTMLElement>("[data-passkey-sign-in]");
  const form = document.querySelector<HTMLFormElement>("[data-passkey-new]");
  const able = typeof PublicKeyCredential === "function";
  if (entry && able) setUpSignIn(entry);
  else entry?.remove();
  if (form && able) setUpNew(form);
  else if (form) {
    need(document, "[data-passkey-none]").hidden = false;
    form.remove();
  }
}

function setUpSignIn(entry: HTMLElement): void {
  const button = need<HTMLButtonElement>(entry, "button");
  const trouble = need(entry, ".wrong");
  let waiting: AbortController | null = null;

  /** In one tab at a time: the first response sets a cookie to which challenges are bound; a second would replace it. */
  async function ask(): Promise<Asked> {
    return navigator.locks.request("lockstep:passkey", async () => (await post(address(entry, "options"))) as Asked);
  }

  async function signIn(asked: Asked, mediation: CredentialMediationRequirement, signal: AbortSignal): Promise<void> {
    const publicKey: PublicKeyCredentialRequestOptions = {
      ...asked,
      challenge: bytes(asked.challenge),
      allowCredentials: [],
    };
    const found = (await navigator.credentials.get({ publicKey, mediation, signal })) as PublicKeyCredential | null;
    if (!found) throw new DOMException("", "NotAllowedError");
    signal.throwIfAborted();
    const body = JSON.stringify({ credential: written(found), next: entry.dataset.next });
    location.assign(((await post(address(entry, "answer"), { body })) as { next: string }).next);
  }

  /** Lets the browser offer passkeys in its autofill, and waits until one is chosen. */
  async function offer(): Promise<void> {
    const mine = new AbortController();
    waiting = mine;
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.()) || mine.signal.aborted) return;
    const asked = await ask().catch(() => null);
    if (!asked || mine.signal.aborted) return; // nobody has pressed anything yet; the button will show the error
    try {
      await signIn(asked, "conditional", mine.signal);
    } catch (error) {
      if (error instanceof ResponseError) trouble.textContent = error.message;
    }
  }

  button.addEventListener("click", () => {
    waiting?.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    trouble.textContent = "";
    button.setAttribute("aria-busy", "true");
    ask()
      .then((asked) => signIn(asked, "optional", signal))
      .catch((error: unknown) => {
        if (signal.aborted) return; // pressed again
        trouble.textContent = inWords(error);
        void offer();
      })
      .finally(() => signal.aborted || button.removeAttribute("aria-busy"));
  });
  void offer();
}

function setUpNew(form: HTMLFormElement): void {
  const trouble = need(form, ":scope > .wrong");
  const button = need<HTMLButtonElement>(form, ":scope > button");

  async function add(): Promise<void> {
    const typed = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    const asked = (await post(address(form, "options"), { body: typed })) as AskedForNew;
    const publicKey: PublicKeyCredentialCreationOptions = {
      ...asked,
      challenge: bytes(asked.challenge),
      user: { ...asked.user, id: bytes(asked.user.id) },
      excludeCredentials: (asked.excludeCredentials ?? []).map((each) => ({ ...each, id: bytes(each.id) })),
    };
    const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential | null;
    if (!made) throw new DOMException("", "NotAllowedError");
    const body = JSON.stringify({ credential: written(made) });
    location.assign(((await post(address(form, "answer"), { body })) as { next: string }).next);
  }

  form.dataset.ready = "";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    trouble.textContent = "";
    showErrors(form, {});
    button.disabled = true;
    add()
      .catch((error: unknown) => {
        if (error instanceof FieldErrors) showErrors(form, error.fields);
        else trouble.textContent = inWords(error);
      })
      .finally(() => (button.disabled = false));
  });
}

/** The URL in an element's data attribute. */
function address(element: HTMLElement, name: string): string {
  const found = element.dataset[name];
  if (!found) throw new Error(`the element has no data-${name}`);
  return found;
}

/** Shows the error messages next to their fields, and focuses the first. */
function showErrors(form: HTMLFormElement, errors: Record<string, string>): void {
  for (const field of form.querySelectorAll("input")) {
    const id = `wrong-${field.name}`;
    document.getElementById(id)?.remove();
    const message = errors[field.name];
    const hint = document.getElementById(`hint-${field.name}`);
    field.toggleAttribute("aria-invalid", false);
    if (hint) field.setAttribute("aria-describedby", hint.id);
    else field.removeAttribute("aria-describedby");
    if (!message) continue;
    const line = document.createElement("p");
    line.className = "wrong";
    line.id = id;
    line.textContent = message;
    field.closest(".field")?.append(line);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", hint ? `${id} ${hint.id}` : id);
  }
  form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
}

async function post(url: string, init: { body?: string | URLSearchParams } = {}): Promise<unknown> {
  const response =
    init.body instanceof URLSearchParams
      ? await fetch(url, { method: "POST", body: init.body })
      : await send(url, { method: "POST", ...init });
  if (response.ok) return response.json();
  const answer = (await response
    .clone()
    .json()
    .catch(() => null)) as { errors?: Record<string, string> } | null;
  if (answer?.errors) throw new FieldErrors(answer.errors);
  throw await responseError(response);
}

function inWords(error: unknown): string {
  if (error instanceof DOMException)
    return say(error.name === "InvalidStateError" ? "passkey.taken" : "passkey.refused");
  return error instanceof TypeError ? say("error.unreachable") : (error as Error).message;
}

/** A credential as JSON, with bytes in base64url. */
function written(credential: PublicKeyCredential): unknown {
  const { response } = credential;
  const parts: Record<string, unknown> = { clientDataJSON: text(response.clientDataJSON) };
  if (response instanceof AuthenticatorAttestationResponse) {
    parts.attestationObject = text(response.attestationObject);
    parts.transports = response.getTransports();
  } else if (response instanceof AuthenticatorAssertionResponse) {
    parts.authenticatorData = text(response.authenticatorData);
    parts.signature = text(response.signature);
    if (response.userHandle) parts.userHandle = text(response.userHandle);
  }
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response: parts };
}

function bytes(encoded: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(encoded.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
}

function text(buffer: ArrayBuffer): string {
  const letters = [...new Uint8Array(buffer)].map((byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
