"""Formulas as the documents write them, x_i ≤ e^{ε_i}, typeset as MathML for the site.

The sources stay readable in an editor and in a diff; browsers lay out MathML by themselves, so that
the built site needs no script, no font and no network. The notation:

* `x_i`, `x_ij`, `x_{i kept}`, `e^{γ_i}`, `A^⊥`, and the Unicode scripts of `D⁻¹` and `Zᵀ`;
* `(…)/(…)` in a displayed formula is a fraction, everywhere else `/` is a slash;
* single letters are variables, two are a product of two, and longer words are words.
"""

import re
from html import escape
from html.parser import HTMLParser

SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀⁿᵏ", "0123456789+−Tnk", strict=True))
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ᵢⱼ", "0123456789ij", strict=True))
# Names of functions, and short words that are not a product of two letters.
NAMES = {
    *("arg", "clip", "cov", "exp", "inf", "ln", "log", "max", "min", "Pr", "sup", "tr"),
    *("Var", "Cov", "diag", "MSE"),
}
SHORT_WORDS = {"as", "at", "by", "if", "in", "is", "no", "of", "on", "or", "so", "to"}
LIMITS = {"Σ", "∏", "∑", "max", "min", "sup", "inf"}
OPERATORS = "=≠≈≤≥<>∝→⇒∈∉∪∩⊆⊂⊇∖+−-±·×∘⊗⪯⪰∼≡|‖∀∃∂∞∎⊥…"
TOKEN = re.compile(
    r"(?P<script>[_^])|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[A-Za-z]+)|(?P<open>[({\[])"
    r"|(?P<close>[)}\]])|(?P<up>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀⁿᵏ]+)|(?P<down>[₀₁₂₃₄₅₆₇₈₉ᵢⱼ]+)"
    r"|(?P<gap> +)|(?P<symbol>.)",
    re.DOTALL,
)


class _Formula:
    """One formula, read from left to right. What does not fit the notation is shown as it is."""

    def __init__(self, text: str, display: bool) -> None:
        self.tokens = [(m.lastgroup or "", m.group()) for m in TOKEN.finditer(text)]
        self.display = display
        self.at = 0

    def next(self) -> tuple[str, str] | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def row(self, until: str = "") -> str:
        """Return everything up to a closing bracket (which is left), or to the end."""
        parts: list[tuple[str, str | None]] = []  # MathML, and of a bracketed part what is inside
        while (token := self.next()) and not (until and token[1] == until):
            if token[1] == "/" and self.display and parts and parts[-1][1]:
                self.at += 1
                below = self.item()
                if below[1]:
                    fraction = f"<mfrac><mrow>{parts[-1][1]}</mrow><mrow>{below[1]}</mrow></mfrac>"
                    parts[-1] = (fraction, None)
                else:
                    parts += [("<mo>/</mo>", None), below]
                continue
            parts.append(self.item())
        return "".join(part for part, _ in parts)

    def item(self) -> tuple[str, str | None]:
        """Return one atom with its scripts, and what is inside it if it is a bracket alone."""
        base, inside, limits = self.atom()
        below = above = ""
        while token := self.next():
            kind, text = token
            if kind == "script":
                self.at += 1
                script = self.script()
                below, above = (script, above) if text == "_" else (below, script)
            elif kind == "up":
                self.at += 1
                above += self.plain("".join(SUPERSCRIPTS[c] for c in text))
            elif kind == "down":
                self.at += 1
                below += self.plain("".join(SUBSCRIPTS[c] for c in text))
            elif text == "′":
                self.at += 1
                above += "<mo>′</mo>"
            else:
                break
        if not below and not above:
            return base, inside
        under, over = ("munder", "mover") if limits and self.display else ("msub", "msup")
        both = "munderover" if limits and self.display else "msubsup"
        below, above = (f"<mrow>{part}</mrow>" if part else "" for part in (below, above))
        tag = both if below and above else under if below else over
        return f"<{tag}><mrow>{base}</mrow>{below}{above}</{tag}>", None

    def plain(self, text: str) -> str:
        return _Formula(text, False).row()

    def script(self) -> str:
        """Return what follows _ or ^: a group in braces, or one number, word or symbol."""
        token = self.next()
        if token is None:
            return ""
        self.at += 1
        if token[1] == "{":
            script = self.row("}")
            self.at += 1
            return script
        if token[0] == "word" and token[1] not in NAMES:
            return "".join(f"<mi>{letter}</mi>" for letter in token[1])
        if token[1] in "−-+" and (after := self.next()) and after[0] in ("number", "word"):
            self.at += 1
            return f"<mo>{token[1]}</mo>{self.plain(after[1])}"
        return self.plain(token[1])

    def atom(self) -> tuple[str, str | None, bool]:
        """Return a token as MathML, its inside if it is a bracket, and if it takes limits."""
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "gap":
            return ('<mspace width="2em"/>' if len(text) > 2 else ""), None, False
        if kind == "number":
            return f"<mn>{text}</mn>", None, False
        if kind == "word":
            return self.word(text)
        if kind == "open":
            closing = {"(": ")", "[": "]", "{": "}"}[text]
            inside = self.row(closing)
            opened = f'<mo stretchy="false">{text}</mo>{inside}'
            if self.next() is None:
                return opened, None, False
            self.at += 1
            whole = f'<mrow>{opened}<mo stretchy="false">{closing}</mo></mrow>'
            return whole, inside if text == "(" else None, False
        if text == "∎":
            return '<mspace width="1em"/><mtext>∎</mtext>', None, False
        if text.isalpha() and text not in "Σ∏∑":
            return f"<mi>{text}</mi>", None, False
        large = ' largeop="true" movablelimits="false"' if text in "Σ∏∑" and self.display else ""
        fixed = ' stretchy="false"' if text in "|‖)]}" else ""
        symbol = {"Σ": "∑", "-": "−"}.get(text, text)
        return f"<mo{large}{fixed}>{escape(symbol)}</mo>", None, text in LIMITS

    def word(self, text: str) -> tuple[str, str | None, bool]:
        if text in NAMES:
            return f'<mi>{text}</mi><mspace width="0.17em"/>', None, text in LIMITS
        if len(text) == 1:
            return f"<mi>{text}</mi>", None, False
        if len(text) == 2 and text not in SHORT_WORDS:
            return "".join(f"<mi>{letter}</mi>" for letter in text), None, False
        return f"<mtext>&nbsp;{text}&nbsp;</mtext>", None, False


def mathml(text: str, display: bool = False) -> str:
    """Return one formula as a MathML element."""
    kind = ' display="block"' if display else ""
    return f"<math{kind}><mrow>{_Formula(text.strip(), display).row()}</mrow></math>"


def displayed(block: str) -> str:
    """Return a displayed formula, one line of the source a line."""
    lines = [line for line in block.rstrip().split("\n") if line.strip()]
    return '<div class="formula">' + "".join(mathml(line, True) for line in lines) + "</div>"


# --- finding formulas in a page ------------------------------------------------------------------

GREEK = "α-ωΑ-Ωϕϑ"
STRONG = re.compile(
    rf"[{GREEK}′⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ₀₁₂₃∂‖⪯⪰∈∉∪∩⊆∏⊗∘]|[A-Za-z)\]}}][_^][{{A-Za-z0-9(*−+-]"
    r"|^[B-HJ-Zb-z]$|^[A-Za-z]\([A-Za-z]"
)
WEAK = re.compile(
    rf"^(?:[{re.escape(OPERATORS)}/]|\d+(?:\.\d+)?|[A-Za-z]{{1,2}}\d?"
    rf"|(?:{'|'.join(sorted(NAMES))})(?:\(.*)?)$"
)
OPERATOR = re.compile(rf"^[{re.escape(OPERATORS)}/]$")
WORD = re.compile(r"[A-Za-z]{3,}")
SKIPPED = {"code", "pre", "math", "script", "style", "h1", "h2", "h3"}


def _is_strong(core: str) -> bool:
    words = set(WORD.findall(re.sub(r"[_^]\{[^}]*\}", "", core))) - NAMES
    return bool(STRONG.search(core)) and not words


def inline(text: str) -> str:
    """Return a stretch of running text (unescaped) as HTML, its formulas as MathML."""
    pieces = re.split(r"(\s+)", text)
    # Braces and brackets may hold spaces: Σ_{i kept} is one piece.
    words: list[str] = []
    for piece in pieces:
        if words and any(words[-1].count(o) > words[-1].count(c) for o, c in ("{}", "[]")):
            words[-1] += " " if piece.isspace() else piece
        else:
            words.append(piece)
    out: list[str] = []
    at = 0
    while at < len(words):
        last = None if words[at].isspace() else _end_of_run(words, at)
        if last is None:
            out.append(escape(words[at], quote=False))
            at += 1
            continue
        run = "".join(" " if word.isspace() else word for word in words[at : last + 1])
        core = run.rstrip(".,;:")
        before = ""
        while core.startswith("(") and core.count("(") > core.count(")"):
            before, core = before + "(", core[1:]
        after = run[len(before) + len(core) :]
        while core.endswith(")") and core.count(")") > core.count("("):
            core, after = core[:-1], ")" + after
        out.append(before + mathml(core) + escape(after, quote=False))
        at = last + 1
    return "".join(out)


def _end_of_run(words: list[str], at: int) -> int | None:
    """Return where the formula that begins at a word ends, or None if none begins there."""
    last, strong, place = None, False, at
    while place < len(words):
        word = words[place]
        if word.isspace():
            place += 1
            continue
        core = word.strip(".,;:()") or word
        is_strong = _is_strong(core)
        beside = [w for w in words[max(0, place - 2) : place + 3] if OPERATOR.match(w)]
        article = core in {"a", "A", "I"} and not beside
        if article or not (is_strong or (WEAK.match(core) and core not in SHORT_WORDS)):
            break
        strong |= is_strong or (bool(beside) and core.isalpha())
        last = place
        if word[-1] in ".,;:" or (word.endswith(")") and word.count(")") > word.count("(")):
            break  # a sentence or a bracket ends here
        place += 1
    return last if strong else None


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self.inside: list[str] = []
        self.text = ""

    def flush(self) -> None:
        if self.text:
            typeset = self.text if self.inside else inline(self.text)
            self.out.append(escape(typeset, quote=False) if self.inside else typeset)
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.flush()
        self.out.append(self.get_starttag_text() or "")
        if tag in SKIPPED:
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.flush()
        self.out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.flush()
        if tag in SKIPPED and self.inside:
            self.inside.pop()
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_entityref(self, name: str) -> None:
        self.text += {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}.get(name, f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.text += chr(int(name[1:], 16) if name[0] in "xX" else int(name))

    def handle_comment(self, data: str) -> None:
        self.flush()
        self.out.append(f"<!--{data}-->")


def typeset(html: str) -> str:
    """Return a page's HTML with its formulas, in lines of their own and in running text, as MathML.

    A formula in a line of its own is an indented block: code is fenced and has a language.
    """
    page = _Page()
    page.feed(re.sub(r"<pre><code>(.*?)</code></pre>", _display, html, flags=re.DOTALL))
    page.close()
    page.flush()
    return "".join(page.out)


def _display(match: re.Match[str]) -> str:
    from html import unescape

    return displayed(unescape(match.group(1)))
