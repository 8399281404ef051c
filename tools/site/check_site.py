#!/usr/bin/env python3
"""Fails for dead links and anchors of a site, and for what its pages load from other hosts.

Prints the page and the link. Links to other sites are not followed.
"""

import argparse
import html.parser
import pathlib
import re
import sys
import urllib.parse

# Tags whose target the browser loads when it shows the page.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Kinds of <link> that load nothing.
NAMED = {"canonical", "prev", "next", "alternate"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = {"", "top"}, [], []
        self.feed(path.read_text(encoding="utf-8", errors="replace"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for key in ("id", "name"):
            if attrs.get(key):
                self.anchors.add(attrs[key])
        if tag in ("a", "area") and attrs.get("href"):
            self.links.append(attrs["href"])
        target = attrs.get(LOADED.get(tag, ""))
        if target and not (tag == "link" and attrs.get("rel") in NAMED):
            self.loads.append(target)


def problems_of_page(site, path, pages):
    page = pages[path]
    for link in page.loads:
        if re.match(r"(https?:)?//", link):
            yield f"loads {link} from another host"
    for link in page.links + page.loads:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = path if not parts.path else path.parent / urllib.parse.unquote(parts.path)
        if parts.path.startswith("/"):
            target = site / parts.path.lstrip("/")
        target = target.resolve()
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            yield f"dead link {link}"
        elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
            yield f"dead anchor {link}"


def problems_of_style(path):
    for link in re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\") ]+)", path.read_text()):
        yield f"loads {link} from another host"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=pathlib.Path)
    site = parser.parse_args().site.resolve()
    pages = {path: Page(path) for path in site.rglob("*.html")}
    found = [f"{path.relative_to(site)}: {problem}"
             for path in sorted(pages) for problem in problems_of_page(site, path, pages)]
    found += [f"{path.relative_to(site)}: {problem}"
              for path in sorted(site.rglob("*.css")) for problem in problems_of_style(path)]
    if found:
        sys.exit("\n".join(found))
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, none dead")


if __name__ == "__main__":
    main()
