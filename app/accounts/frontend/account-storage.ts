/**
 * Keeps data in this browser's storage private to its account, or to the visitor without one.
 *
 * Pages are the same for everyone, so a cookie that scripts can read names the account. Before a page reads the
 * storage, it compares that account with the one that used the storage last. If that account has signed out, or another
 * one has signed in, all of its data is removed. Data that belongs to the device rather than to a person stays.
 */

/** The part of Storage that this module uses. */
export type StorageArea = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const COOKIE = /(?:^|;\s*)(?:__Host-)?lockstep_account=([^;]*)/;
const SIGNED_OUT = "signed-out";
const ACCOUNT = "lockstep:account";
const DRAFT = "lockstep:draft:";
const OURS = "lockstep:";
const OF_DEVICE: ReadonlySet<string> = new Set([ACCOUNT, "lockstep:theme", "lockstep:lanes", "lockstep:code"]);

/** The storage key of a cell's draft. `account` is empty without an account. */
export function draftKey(account: string, lesson: string, cell: string): string {
  return `${DRAFT}${account}:${lesson}:${cell}`;
}

/** The account named in the page's cookies; empty without one. */
export function accountIn(cookies: string): string {
  const value = valueIn(cookies);
  return value === SIGNED_OUT ? "" : value;
}

/**
 * Removes data that the current person must not see, and moves a visitor's drafts to the account they signed in to.
 * Returns that account.
 *
 * A session that expired is not a sign-out: its account keeps its drafts, unless another account signs in first.
 */
export function claimStorage(storage: StorageArea, cookies: string): string {
  const account = accountIn(cookies);
  const before = storage.getItem(ACCOUNT) ?? "";
  const mayStay = (whose: string | undefined): boolean => {
    if (account) return whose === account || whose === "";
    return valueIn(cookies) === SIGNED_OUT ? whose === "" && before === "" : whose !== undefined;
  };
  for (const key of keysOf(storage)) {
    if (!key.startsWith(DRAFT)) {
      if (before && before !== account) storage.removeItem(key);
      continue;
    }
    const whose = draftOwner(key);
    if (!mayStay(whose)) storage.removeItem(key);
    else if (account && whose === "") move(storage, key, DRAFT + account + key.slice(DRAFT.length));
  }
  if (before !== account) storage.setItem(ACCOUNT, account);
  return account;
}

function valueIn(cookies: string): string {
  return COOKIE.exec(cookies)?.[1] ?? "";
}

/** The account in a draft's key; undefined for keys from before accounts were part of them. */
function draftOwner(key: string): string | undefined {
  const [account, lesson, cell] = key.slice(DRAFT.length).split(":");
  return lesson === undefined || cell === undefined ? undefined : account;
}

function move(storage: StorageArea, from: string, to: string): void {
  storage.setItem(to, storage.getItem(from) ?? "");
  storage.removeItem(from);
}

function keysOf(storage: StorageArea): string[] {
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? "");
  return keys.filter((key) => key.startsWith(OURS) && !OF_DEVICE.has(key));
}

/** The browser's storage, or null if access is denied. */
export function availableStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/** The account that this page was loaded for: empty without one, null once it has left. */
let current: string | null = "";
/** How long to wait for a form that was just sent, which usually loads another page. */
const LEAVING_MS = 10_000;
let leavingUntil = 0;

/** Call this before anything reads the storage. From then on, the page notices when its account leaves. */
export function setUpAccountStorage(): void {
  current = claimedAccount();
  const look = (): void => void currentAccount();
  window.addEventListener("submit", ({ defaultPrevented }) => {
    if (!defaultPrevented) leavingUntil = performance.now() + LEAVING_MS;
  });
  for (const event of ["storage", "focus"]) window.addEventListener(event, look);
  for (const event of ["visibilitychange", "htmx:after:swap"]) document.addEventListener(event, look);
  // The browser may keep this page for its Back button: hide it until we know who returns.
  window.addEventListener("pagehide", () => document.documentElement.classList.toggle("away", Boolean(current)));
  window.addEventListener("pageshow", () => {
    leavingUntil = 0;
    if (currentAccount() !== null) document.documentElement.classList.remove("away");
  });
}

/** The account whose drafts this page may use; null if the page still shows those of an account that has left. */
export function currentAccount(): string | null {
  if (current === null || accountIn(document.cookie) === current) return current;
  const visitor = current === "";
  current = claimedAccount();
  if (visitor) return current; // the visitor has signed in: it is the same person
  current = null;
  document.documentElement.classList.add("away");
  reloadForAccount();
  return null;
}

/** Reloads the page for the current account, but not before a form that was just sent, which that would cancel. */
export function reloadForAccount(): void {
  window.setTimeout(() => window.location.reload(), leavingUntil - performance.now());
}

function claimedAccount(): string {
  const storage = availableStorage();
  try {
    if (storage) return claimStorage(storage, document.cookie);
  } catch {
    // Storage is full or denied, so it has nothing that anyone could see.
  }
  return accountIn(document.cookie);
}
