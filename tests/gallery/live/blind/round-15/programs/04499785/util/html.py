import html as htmllib
import os
from html.parser import HTMLParser

VOID = {"img", "br", "meta"}


class Node:
    def __init__(self, tag, **attrs):
        self.tag, self.attrs, self.children = tag, attrs, []

    def add(self, child):
        self.children.append(child)
        return child

    def render(self, depth=0):
        pad = "  " * depth
        attrs = "".join(f' {k}="{htmllib.escape(str(v))}"' for k, v in self.attrs.items())
        if self.tag in VOID:
            return f"{pad}<{self.tag}{attrs}>"
        parts = [f"{pad}<{self.tag}{attrs}>"]
        for c in self.children:
            parts.append(c.render(depth + 1) if isinstance(c, Node) else pad + "  " + htmllib.escape(c))
        parts.append(f"{pad}</{self.tag}>")
        return "\n".join(parts)


class _TreeBuilder(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = Node("root")
        self.stack = [self.root]

    def handle_starttag(self, tag, attrs):
        node = self.stack[-1].add(Node(tag, **dict(attrs)))
        if tag not in VOID:
            self.stack.append(node)

    def handle_endtag(self, tag):
        if tag not in VOID:
            self.stack.pop()

    def handle_data(self, data):
        if data.strip():
            self.stack[-1].add(data.strip())


class HTML:
    def __init__(self, web_dir, title):
        self.path = os.path.join(web_dir, "index.html")
        self.img_dir = os.path.join(web_dir, "images")
        os.makedirs(self.img_dir, exist_ok=True)
        if os.path.exists(self.path):
            builder = _TreeBuilder()
            with open(self.path) as f:
                builder.feed(f.read())
            self.doc = builder.root.children[0]
        else:
            self.doc = Node("html")
            self.doc.add(Node("head")).add(Node("title")).add(title)
            self.doc.add(Node("body"))
        self.body = self.doc.children[1]

    def add_header(self, text):
        self.body.add(Node("h3")).add(text)

    def add_images(self, ims, txts, links, width=256):
        table = self.body.add(Node("table", border=1, style="table-layout: fixed;"))
        tr = table.add(Node("tr"))
        for im, txt, link in zip(ims, txts, links):
            td = tr.add(Node("td", style="word-wrap: break-word;", halign="center", valign="top"))
            p = td.add(Node("p"))
            a = p.add(Node("a", href=os.path.join("images", link)))
            a.add(Node("img", style=f"width:{width}px", src=os.path.join("images", im)))
            p.add(Node("br"))
            p.add(Node("p")).add(txt)

    def save(self):
        with open(self.path, "wt") as f:
            f.write(self.doc.render())
