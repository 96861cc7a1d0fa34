/** Offers generated content as a download. */

import { make } from "./element";

export function offer(parts: BlobPart[], type: string, name: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  make<HTMLAnchorElement>("a", { href: url, download: name }).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
