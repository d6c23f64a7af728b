// The questions, and the answers so far: in the memory of this page only.

import { foreign, isolated, make, note } from "./elements.js";
import { unitsOf } from "./numbers.js";
import { daysFrom, decimalFrom, intervalOf } from "./typed.js";

const MOST_LISTED = 12; // intervals or points next to the question; more are folded

/** Number of categories that a typed number becomes: intervals, or points of its grid. */
const typedInto = ({ edges, grid }) => grid?.points ?? (edges ? edges.length - 1 : 0);

/** The date of some days since 1970-01-01, as 2025-12-31. */
const isoDay = (days) => new Date(days * 86400000).toISOString().slice(0, 10);

const TYPED = "input:not([type=radio])";

/** A form on a page, which provides language, words and numbers. */
export class Form {
  /** `study` as opened, `found` the guarantee of its law, `names` the attributes in order. */
  constructor(study, found, names) {
    this.study = study;
    this.found = found;
    this.names = names;
    this.answers = study.questions.map(() => null);
    this.typed = study.questions.map(() => "");
    this.marked = false; // whether missing answers have been requested
  }

  /** Whether there are unsent answers. */
  get started() {
    return this.answers.some((answer) => answer !== null) || this.typed.some((text) => text !== "");
  }

  /** Returns the elements with the answers so far, in the language of `page`. */
  elements(page) {
    this.page = page;
    this.summary = make("div", { id: "missing", tabindex: "-1" });
    this.fields = this.study.questions.map((question, q) => this.field(question, q));
    if (this.marked) this.mark();
    return [...this.fields, this.summary];
  }

  words(q) {
    return this.study.questions[q].texts[this.page.language];
  }

  /** The range of a number or a date, in words; empty without one. */
  range({ edges, grid }) {
    const { t } = this.page;
    const [low, high] = grid?.range ?? [edges[0], edges[edges.length - 1]];
    const say = (end) => (grid?.dates ? this.page.date(end) : this.page.say(end));
    const [least, most] = [low, high].map((end) => end !== null && say(end));
    if (low === null) return high === null ? "" : t.upTo(most);
    return high === null ? t.fromOn(least) : t.from(least, most);
  }

  field(question, q) {
    const words = this.words(q);
    const typed = typedInto(question);
    const inputs = typed ? this.number(question, q, words) : [];
    words.labels.slice(typed).forEach((label, j) => {
      const id = `q${q}-${j}`;
      const { grid } = question;
      const code = grid ? BigInt(grid.step) * BigInt(typed + j) : typed + j;
      const input = make("input", {
        type: "radio", id, name: `q${q}`, autocomplete: "off",
        onchange: () => {
          const number = this.fields[q].querySelector(TYPED);
          if (number !== null) number.value = "";
          this.typed[q] = "";
          this.answer(q, code);
        },
      });
      input.checked = this.answers[q] === code;
      inputs.push(make("div", { class: "choice" }, input, make("label", { for: id, dir: "auto" }, label)));
    });
    const described = [words.help && `q${q}-help`, `q${q}-lacks`].filter(Boolean).join(" ");
    const group = typed ? {} : { role: "radiogroup", "aria-required": "true" };
    return make("fieldset", {
        id: `q${q}`, "aria-labelledby": `q${q}-asks`, "aria-describedby": described, ...group,
        onkeydown: (event) => this.enter(event, q),
      },
      make("legend", { id: `q${q}-asks`, dir: "auto" }, words.text),
      words.help ? make("p", { id: `q${q}-help`, dir: "auto" }, words.help) : null,
      make("p", { id: `q${q}-lacks`, class: "lacks" }),
      ...inputs, this.protection(question, words));
  }

  /** A field for a number or a date, preceded by the remark that only its interval or a point next to
   * it is used. */
  number(question, q, words) {
    const { t, decimal } = this.page;
    const { edges, grid } = question;
    const labels = words.labels.slice(0, typedInto(question));
    const least = grid ? grid.range[0] : edges[0];
    const kind = grid?.dates
      ? { type: "date", min: isoDay(grid.range[0]), max: isoDay(grid.range[1]) }
      : { type: "text", inputmode: least === null || least < 0 ? "text" : "decimal" };
    const input = make("input", {
      ...kind, id: `q${q}-number`, autocomplete: "off", dir: "ltr",
      "aria-describedby": `q${q}-range q${q}-bins q${q}-lacks`,
      oninput: () => {
        const text = grid?.dates ? daysFrom(input.value) : decimalFrom(input.value, decimal);
        const interval = grid ? null : intervalOf(edges, text === "" ? NaN : Number(text));
        this.typed[q] = input.value;
        this.fields[q].querySelectorAll("input[type=radio]").forEach((radio) => (radio.checked = false));
        this.answer(q, grid ? unitsOf(text, grid) : interval < 0 ? null : interval);
      },
    });
    input.value = this.typed[q];
    const list = make("ul", { class: "bins" }, ...labels.map((label) => make("li", {}, foreign(label))));
    const said = make("p", { id: `q${q}-bins` }, grid ? t.onlyPoint : t.onlyInterval);
    return [
      said,
      labels.length > MOST_LISTED ? make("details", {}, make("summary", {}, t.intervals), list) : list,
      make("div", { class: "choice" },
        make("label", { for: `q${q}-number` }, grid?.dates ? t.date : t.number), " ", input, " ",
        make("span", { id: `q${q}-range` }, this.range(question), " ", foreign(words.unit ?? ""))),
      make("p", { id: `q${q}-used`, role: "status" }, ...this.used(q)),
    ];
  }

  /** The interval of a typed number, or the points next to it and how often each is used. */
  used(q) {
    const { t } = this.page;
    const { edges, grid } = this.study.questions[q];
    const { labels } = this.words(q);
    const answer = this.answers[q];
    if (answer === null || this.typed[q] === "") return [];
    if (edges) return isolated(t.countsAs, labels[answer]);
    const step = BigInt(grid.step);
    const [point, above] = [Number(answer / step), answer % step];
    if (above === 0n) return isolated(t.countsAs, labels[point]);
    const upper = Math.round((100 * Number(above)) / grid.step);
    return isolated((a, b) => t.countsAsOne(a, 100 - upper, b, upper), labels[point], labels[point + 1]);
  }

  answer(q, code) {
    this.answers[q] = code;
    this.fields[q].querySelector("[role=status]")?.replaceChildren(...this.used(q));
    if (this.marked) this.mark();
  }

  /** Enter moves to the next question, after the last to the button. */
  enter(event, q) {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT" || event.isComposing) return;
    event.preventDefault();
    this.focus(q + 1);
  }

  /** Sets the focus on a question, or on the button after the last. */
  focus(q) {
    const field = this.fields[q];
    const target = field?.querySelector("input:checked") ?? field?.querySelector("input");
    (target ?? document.getElementById("send")).focus();
  }

  // --- protection ------------------------------------------------------------------------------

  /** Probability of each answer to be sent unchanged, in words and dots; made when opened. */
  protection(question, words) {
    const { t } = this.page;
    const place = this.names.indexOf(question.attribute);
    const row = this.found.rows[place];
    if (row.asItIs) return note(t.asItIs);
    const said = make("div");
    const fill = () => said.hasChildNodes() || said.append(
      ...(question.grid ? [make("p", {}, t.firstRounded)] : []),
      ...(row.send === null
        ? this.alike(this.keptOf100(row, place, words.labels.length), words.labels, question.grid)
        : words.answers?.length && question.grid
          ? this.spread(row.send, question.grid.points, words)
          : this.each(row.send, place, question, words)));
    return make("details", { class: "protection", ontoggle: fill }, make("summary", {}, t.protect), said);
  }

  /** Of a hundred, those who send a column unchanged: a part of a merged attribute also by chance. */
  keptOf100(row, place, labels) {
    const n = this.study.sizes[place];
    const alike = n / labels; // combinations that agree with the part
    return Math.round(100 * (row.keep + ((1 - row.keep) * (alike - 1)) / (n - 1)));
  }

  /** All answers are unchanged with equal probability, and replaced uniformly. */
  alike(same, labels, grid) {
    const { t } = this.page;
    const sentence = labels.length > 2
      ? (label) => isolated((a) => t.dots(a, same), label)
      : (label, x) => isolated((a, b) => t.dotsTwo(a, same, b), label, labels[1 - x]);
    const picture = make("div", { class: "dots", "aria-hidden": "true" },
      ...Array.from({ length: 100 }, (_, i) => make("i", { class: i < same ? "same" : "other" })));
    if (grid) return [make("p", {}, t.dotsPoint(same)), picture];
    return [
      ...labels.map((label, x) => make("p", {}, ...sentence(label, x))),
      picture,
      make("p", { class: "small", "aria-hidden": "true" }, t.dotsKey),
    ];
  }

  /** A matrix has the probabilities. For a part of a merged attribute they may depend on the other
   * parts: then from the least to the most. */
  each(send, place, question, { labels, answers = [] }) {
    const { t } = this.page;
    const size = this.study.sizes[place];
    const part = (code) => Math.floor(code / question.stride) % labels.length;
    const named = this.study.outputs[place] === size;
    const lines = named ? labels.map(() => Array(size).fill(0)) : send;
    if (named) send.forEach((line, z) => line.forEach((p, x) => (lines[part(z)][x] += p)));
    return labels.map((label, a) => {
      const pieces = lines.map((line, y) => {
        const shares = line.filter((_, x) => part(x) === a).map((p) => Math.round(100 * p));
        const [least, most] = [Math.min(...shares), Math.max(...shares)];
        return t.dotsPart(least === most ? least : `${least}–${most}`, answers[y] ?? (named ? labels[y] : t.answerNumber(y + 1)));
      });
      return make("p", {}, ...isolated((a) => t.dotsMany(a, pieces.join(t.comma)), label));
    });
  }

  /** A matrix of a number: the middle half and nine tenths of what is sent, at three points. */
  spread(send, points, { labels, answers }) {
    const { t } = this.page;
    const lines = [0, (points - 1) >> 1, points - 1].map((x) => {
      let sum = 0;
      const sums = send.map((line) => (sum += line[x]));
      const limits = [0.25, 0.75, 0.05, 0.95].map((p) => answers[sums.findIndex((s) => s >= p)]);
      return make("p", {}, ...isolated(t.spread, labels[x], ...limits));
    });
    return [...lines, make("p", { class: "small" }, t.beyond)];
  }

  // --- missing answers, and the end -------------------------------------------------------------

  /** Marks the questions without an answer, at their fields and in a list below; returns their
   * number. */
  mark() {
    const { t } = this.page;
    this.marked = true;
    const missing = this.answers.flatMap((answer, q) => (answer === null ? [q] : []));
    this.study.questions.forEach((question, q) => {
      const lacks = missing.includes(q);
      const field = this.fields[q];
      const number = field.querySelector(TYPED);
      (number ?? field).setAttribute("aria-invalid", String(lacks));
      field.classList.toggle("missing", lacks);
      const hint = !this.typed[q] ? t.lacks : (question.grid?.dates ? t.badDate : t.badNumber)(this.range(question));
      const line = field.querySelector(".lacks");
      if (line.textContent !== (lacks ? hint : "")) line.textContent = lacks ? hint : "";
    });
    this.summary.replaceChildren(...(missing.length === 0 ? [] : [
      make("p", {}, t.missing),
      make("ul", {}, ...missing.map((q) => make("li", {}, make("button", {
        type: "button", class: "link", onclick: () => this.focus(q),
      }, foreign(this.words(q).text))))),
    ]));
    return missing.length;
  }

  /** Erases true answers, in memory and in the inputs. */
  erase() {
    this.answers.fill(null);
    this.typed.fill("");
    for (const input of this.fields.flatMap((field) => [...field.querySelectorAll("input")])) {
      input.checked = false;
      if (input.type !== "radio") input.value = "";
    }
  }
}
