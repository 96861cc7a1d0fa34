"""Links and pictures of a document: what they become in a lesson, and which files go along."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from app.imports.book import SUFFIXES
from app.imports.outline import Page, normalized
from app.imports.report import Report
from app.imports.source import TextSegment, slug
from app.imports.source_tree import AssetFolder, SourceTree, UnusableFile, decode_data_url, named_data
from app.lessons.labels import Labels
from app.lessons.links import InvalidLink, parse_link
from app.lessons.roles import TextRole, read_role, reference_words, term_id

_OUTSIDE = ("http", "https", "mailto")
_DOCUMENTS = (".ipynb", ".md", ".html", ".rst", "")


@dataclass(slots=True)
class References:
    """Those of one page. ``place`` is where the conversion is, and ``segment`` what it converts."""

    page: Page
    index: Mapping[PurePosixPath, Page]
    tree: SourceTree
    report: Report
    assets: AssetFolder = field(default_factory=AssetFolder)
    place: str = ""
    segment: TextSegment | None = None

    @property
    def _folder(self) -> PurePosixPath:
        return self.page.document.path.parent

    # --- links ---

    def link(self, href: str) -> str | None:
        """The target of a link in the lesson; None if there is none, and the link becomes plain text."""
        href = href.strip()
        target = self._target(href)
        if target is None:
            self.report.note(self.place, f"link removed, its text kept: '{href[:80]}' leads to no page or file here")
            return None
        try:
            parse_link(target)
        except InvalidLink:
            self.report.note(self.place, f"link removed, its text kept: lessons cannot link to '{href[:80]}'")
            return None
        return target

    def _target(self, href: str) -> str | None:
        try:
            parts = urlsplit(href)
        except ValueError:
            return None
        if parts.scheme in _OUTSIDE:
            return _escaped(href)
        if href.startswith("//") and parts.netloc:
            return _escaped(f"https:{href}")
        if href.startswith("www."):
            return _escaped(f"https://{href}")
        if parts.scheme:
            return None
        if not parts.path:
            label = unquote(parts.fragment)
            found = self.page.ids.get(normalized(label))
            return f"#{quote(found)}" if found else self.label_link(label)
        document = self.document_link(parts.path, unquote(parts.fragment))
        if document is None and PurePosixPath(parts.path).suffix in SUFFIXES:  # it is not a file to read as it is
            return None
        return document or self.file_link(href) or self.label_link(href)

    def document_link(self, path: str, fragment: str = "") -> str | None:
        """A link to another document of the import, which is a lesson now."""
        other = self.find_page(path)
        if other is None:
            return None
        found = other.ids.get(normalized(fragment)) if fragment else None
        mark = f"#{quote(found)}" if found else ""
        if other is self.page:
            return mark or f"../{other.slug}/lesson.md"
        return f"../{other.slug}/lesson.md{mark}"

    def find_page(self, path: str) -> Page | None:
        """The page that a path names, with or without an ending, from this document or from the root."""
        plain = unquote(path)
        start = "" if plain.startswith("/") else str(self._folder)
        joined = PurePosixPath(posixpath.normpath(posixpath.join(start, plain.lstrip("/"))))
        if joined.suffix in _DOCUMENTS and joined.suffix:
            joined = joined.with_suffix("")
        return self.index.get(joined)

    def label_link(self, label: str) -> str | None:
        """A link to a heading with this label, in any document."""
        pages = [self.page, *(page for page in self.index.values() if page is not self.page)]
        for page in pages:
            found = next((page.ids.get(normalized(h.text)) for h in page.headings if label in h.names), None)
            if found is not None:
                found = page.ids.get(normalized(label), found)
                return f"#{quote(found)}" if page is self.page else f"../{page.slug}/lesson.md#{quote(found)}"
            if any(h.at == page.title_at and label in h.names for h in page.headings):
                return f"../{page.slug}/lesson.md"
        return None

    def label_text(self, label: str) -> str:
        """The text of the heading with this label; empty if there is none."""
        pages = [self.page, *self.index.values()]
        return next((h.text for page in pages for h in page.headings if label in h.names), "")

    # --- roles ---

    def role(self, name: str, content: str) -> str | None:
        """What a role becomes; None if it stays as it is. What leads nowhere becomes plain text."""
        role = read_role(name, content)
        match role.name:
            case "doc":
                page = self.find_page(role.target)
                words = role.words or (page.title if page is not None else _readable(role.target))
                return self._linked(words, role.target, self.document_link(role.target))
            case "download":
                link = self.file_link(role.target)
                return f"[{role.words or role.target}]({link})" if link is not None else None
            case "ref" if (text := role.words or self.label_text(role.target)) and (
                link := self.label_link(role.target)
            ):
                return f"[{text}]({link})"
            case "ref" | "numref" | "eq":
                return self._reference(role)
            case "term":
                return self._term(role)
        return None

    def _linked(self, words: str, target: str, link: str | None) -> str:
        if link is not None:
            return f"[{words}]({link})"
        self.report.note(self.place, f"reference replaced by its text: '{target[:80]}' leads to no page or name here")
        return words

    def _reference(self, role: TextRole) -> str | None:
        """A reference to something with a name. What is in the same document has its number on the page."""
        if role.target in self.page.labels().by_name:
            return None
        for page in self.index.values():
            labels = page.labels()
            label = labels.by_name.get(role.target)
            if label is not None and label.kind != "cell":
                return f"[{reference_words(role, labels)}](../{page.slug}/lesson.md#{quote(label.id)})"
        return self._linked(reference_words(role, Labels()), role.target, None)

    def _term(self, role: TextRole) -> str | None:
        words = role.words or role.target
        if term_id(role, self.page.labels()) is not None:
            return None
        found = ((page, term_id(role, page.labels())) for page in self.index.values())
        link = next((f"../{page.slug}/lesson.md#{quote(made)}" for page, made in found if made is not None), None)
        return self._linked(words, role.target, link)

    # --- files ---

    def file_link(self, reference: str) -> str | None:
        """A link to a file that goes along; None if there is no such file that a lesson can have."""
        file = self.tree.find(self._folder, reference)
        return None if file is None else self._asset(file, reference)

    # --- pictures ---

    def picture(self, source: str, alt: str, inside_link: bool = False) -> str:
        """The Markdown of a picture."""
        path = self.picture_path(source, inside_link)
        if path is not None:
            return f"![{alt.strip() or self.describe(path)}]({path})"
        outside = source.strip() if scheme_of(source) in ("http", "https") else None
        if inside_link and outside:  # a badge or an icon: the link's words are enough
            return alt.strip()
        words = alt.strip() or ("Picture" if outside else f"Picture: {PurePosixPath(unquote(source)).name[:60]}")
        if inside_link or outside is None:
            return words
        return f"[{words}]({_escaped(outside)})"

    def picture_path(self, source: str, inside_link: bool = False) -> str | None:
        """The path of a picture in the lesson; None if a lesson cannot show it, which the report says."""
        source = source.strip()
        scheme = scheme_of(source)
        try:
            if scheme == "attachment":
                return self._attachment(unquote(source.partition(":")[2]))
            if scheme == "data":
                return self.assets.add(*decode_data_url(source))
        except UnusableFile as e:
            self.report.note(self.place, f"picture dropped: {e}")
            return None
        if scheme in ("http", "https") and inside_link:
            return None
        if scheme in ("http", "https"):
            text = f"picture of another site replaced by a link: {source[:80]}; save it in assets/ to show it"
            self.report.note(self.place, text)
            return None
        file = self.tree.find(self._folder, source)
        if file is None:
            self.report.note(self.place, f"picture dropped, its text kept: there is no file '{source[:80]}' here")
            return None
        return self._asset(file, source)

    def describe(self, path: str) -> str:
        """Alternative text for a picture that has none."""
        words = " ".join(slug(PurePosixPath(path).stem).split("-")) or "picture"
        self.report.note(self.place, f"alternative text made from the name of {path}: '{words}'; write what it shows")
        return words

    def _attachment(self, name: str) -> str | None:
        bundle = self.segment.attachments.get(name) if self.segment is not None else None
        if not bundle:
            raise UnusableFile(f"the cell has no attachment '{name[:60]}'")
        kind, data = next(((k, d) for k, d in bundle.items() if k.startswith("image/")), next(iter(bundle.items())))
        return self.assets.add(*named_data(name, kind, data))

    def _asset(self, file: Path, reference: str) -> str | None:
        try:
            path = self.assets.add(file.name, self.tree.read_asset(file))
        except UnusableFile as e:
            self.report.note(self.place, f"file '{reference[:80]}' left out: {e}")
            return None
        self.report.note(self.place, f"'{reference[:80]}' copied to {path}")
        return path


def _readable(path: str) -> str:
    """The words in the name of a document."""
    return " ".join(re.findall(r"[^\W_]+", PurePosixPath(path).stem)) or path


def scheme_of(address: str) -> str:
    """The scheme of an address, in lowercase; empty if it has none."""
    head, colon, _ = address.strip()[:40].partition(":")
    return head.lower() if colon and head.isalpha() else ""


def _escaped(address: str) -> str:
    """An address as Markdown can contain it between parentheses."""
    return "".join(f"%{ord(c):02X}" if c in ' "<>()\\`' else c for c in " ".join(address.split()))
