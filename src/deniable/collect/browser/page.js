// The page: explains, asks, draws once, sends once.

import { checkStatements } from "./account.js";
import { SystemBits } from "./randomness.js";
import { Sampler } from "./sampler.js";
import { Kept } from "./storage.js";
import { TEXTS } from "./texts.js";

const TOKEN = /^[0-9a-f]{32}$/;
const WAIT = 500; // milliseconds from the click to the first request, whatever was answered
const app = document.getElementById("app");

/** Makes an element: text is always set as text, never as markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Text of the study, which may run in any direction. */
const foreign = (text, tag = "bdi") => make(tag, { dir: "auto" }, text);

/** Puts what the page says with foreign text in it: the direction of each does not disturb. */
function isolated(sentence, ...pieces) {
  const marks = pieces.map((_, i) => `\u0001${i}\u0002`);
  const parts = sentence(...marks).split(/\u0001(\d+)\u0002/);
  return parts.map((part, i) => (i % 2 ? foreign(pieces[Number(part)]) : part));
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function digest(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

class Page {
  constructor(text) {
    this.text = text;
    this.study = JSON.parse(text);
    this.saved = location.protocol === "file:";
    this.token = location.hash.slice(1);
    const asked = this.study.languages.find((code) => navigator.language.startsWith(code));
    this.language = asked ?? this.study.languages[0];
    this.answers = null;
    this.source = new SystemBits();
  }

  get t() {
    return TEXTS[this.language.split("-")[0]] ?? TEXTS.en;
  }

  get words() {
    return this.study.texts[this.language];
  }

  async start() {
    if (!(globalThis.crypto?.subtle && typeof BigInt === "function")) {
      return this.show("refused", this.heading(this.t.refusedTitle), make("p", {}, this.t.noBrowser));
    }
    this.identity = await digest(new TextEncoder().encode(this.text));
    try {
      await this.check();
    } catch (error) {
      return this.show(
        "refused",
        this.heading(this.t.refusedTitle),
        make("p", {}, this.t.refused),
        make("p", { dir: "ltr", lang: "en" }, error.message),
        foreign(this.words.contact, "p"),
      );
    }
    this.kept = await Kept.of(this.identity);
    addEventListener("pagehide", () => this.erase());
    addEventListener("hashchange", () => {
      // Another link in the same tab; what is drawn and cannot be stored stays.
      if (this.kept.lasting || this.kept.memory === null) location.reload();
    });
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    await this.resume();
  }

  /** Draws nothing, asks nothing: everything the study states is worked out from its law. */
  async check() {
    const { mechanism, gates, law_digest: stated, sizes, outputs } = this.study;
    if (document.documentElement.dataset.study !== this.identity) {
      throw new Error("this is not the study that the page was made for");
    }
    const law = new TextEncoder().encode(JSON.stringify([mechanism.blocks, gates]));
    if ((await digest(law)) !== stated) throw new Error("the law is not the one it was opened with");
    const names = mechanism.attributes.map((attribute) => attribute.name);
    this.sampler = new Sampler(mechanism.blocks, gates, names, sizes);
    this.found = checkStatements(this.sampler, mechanism);
    this.digits = outputs.map((n) => (n - 1).toString(16).length);
    this.names = names;
  }

  async resume() {
    const kept = await this.kept.read();
    if (kept?.state === "drawn") return this.deliver();
    if (kept?.state === "closed") return this.showNotTaken(410);
    if (kept?.state === "answered" && !this.study.shared_device) return this.showAnswered(kept.receipt);
    if (this.invited && !TOKEN.test(this.token)) {
      return this.show("no-token", this.heading(this.words.title), make("p", {}, this.t.noToken));
    }
    const ended = await (await this.link(this.token))?.read();
    if (ended) return ended.status === 201 ? this.showAnswered(null) : this.showNotTaken(ended.status);
    return this.showIntroduction();
  }

  get invited() {
    return this.study.respondents === "invited";
  }

  /** On a device of several people, what became of the form of one invitation: how it was answered,
   * under the hash of its token, and nothing that was sent. */
  async link(token) {
    if (!(this.study.shared_device && this.invited)) return null;
    return Kept.of(`${this.identity} ${await digest(new TextEncoder().encode(token))}`);
  }

  // --- what is seen ---------------------------------------------------------------------------

  heading(text) {
    return make("h1", { tabindex: "-1", dir: "auto" }, text);
  }

  show(state, ...children) {
    document.documentElement.lang = this.language;
    document.documentElement.dir = this.study.right_to_left.includes(this.language) ? "rtl" : "ltr";
    app.replaceChildren(...this.languages(state), ...children.filter((child) => child !== null));
    app.dataset.state = state;
    app.querySelector("h1")?.focus();
  }

  languages(state) {
    if (this.study.languages.length < 2 || state !== "introduction") return [];
    const choose = make(
      "select",
      {
        id: "language",
        onchange: (event) => {
          this.language = event.target.value;
          this.showIntroduction();
          document.getElementById("language").focus();
        },
      },
      ...this.study.languages.map((code) =>
        make("option", { value: code, lang: code, selected: code === this.language },
          new Intl.DisplayNames([code], { type: "language" }).of(code)),
      ),
    );
    return [make("p", { class: "languages" }, make("label", { for: "language" }, this.t.language), " ", choose)];
  }

  showIntroduction() {
    const { t, words } = this;
    const odds = this.found.epsilon < 700 ? Math.ceil(Math.exp(this.found.epsilon) * (1 - 1e-12)) : Infinity;
    const shown = odds.toLocaleString(this.language);
    this.show(
      "introduction",
      this.heading(words.title),
      foreign(words.purpose, "p"),
      make("h2", {}, t.who),
      foreign(words.contact, "p"),
      make("p", {}, t.closes(new Date(`${this.study.closes}T12:00:00Z`)
        .toLocaleDateString(this.language, { dateStyle: "long", timeZone: "UTC" }))),
      make("h2", {}, t.what),
      make("ol", {}, ...t.happens.map((line) => make("li", {}, line))),
      make("h2", {}, t.oddsTitle),
      make("p", { class: "odds" }, t.odds(shown)),
      make("p", {}, t.oddsExample(shown)),
      odds > 100 ? make("p", {}, t.oddsMuch) : null,
      this.trying(),
      ...words.consent.map((paragraph) => foreign(paragraph, "p")),
      this.saved ? this.note(t.saved) : null,
      this.study.shared_device ? this.note(t.sharedDevice) : null,
      this.kept.lasting ? null : this.note(t.cannotStore),
      make("button", { type: "button", id: "agree", onclick: () => this.showQuestions() }, t.agree),
      make("p", { class: "code" }, `${t.code}: `,
        make("code", { dir: "ltr" }, this.identity.match(/.{8}/g).join(" ")), make("br"), t.codeHelp),
    );
  }

  note(text) {
    return make("p", { class: "note" }, text);
  }

  trying() {
    const { t } = this;
    const codes = this.study.sizes.map(() => 0);
    const body = make("tbody");
    const roll = () => {
      const drawn = this.sampler.draw(codes, this.source);
      body.replaceChildren(...this.rows(drawn, this.readable(codes, false)));
    };
    const table = make("table", {},
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t.question),
        make("th", { scope: "col" }, t.madeUp), make("th", { scope: "col" }, t.wouldSend))),
      body);
    const block = make("details", { id: "try" }, make("summary", {}, t.try), make("p", {}, t.tryHelp),
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": t.try, "aria-live": "polite" }, table),
      make("button", { type: "button", onclick: roll }, t.draw));
    roll();
    return block;
  }

  /** The texts of a record, one for each question. */
  readable(codes, released = true) {
    return this.study.questions.map((question) => {
      const place = this.names.indexOf(question.attribute);
      const labels = question.texts[this.language].labels;
      if (released && this.study.outputs[place] !== this.study.sizes[place]) {
        return this.t.answerNumber(codes[place] + 1);
      }
      return labels[Math.floor(codes[place] / question.stride) % labels.length];
    });
  }

  rows(codes, before = null) {
    return this.readable(codes).map((sent, i) =>
      make("tr", {},
        make("th", { scope: "row", dir: "auto" }, this.study.questions[i].texts[this.language].text),
        before === null ? null : make("td", { dir: "auto" }, before[i]),
        make("td", { dir: "auto" }, sent)));
  }

  showQuestions() {
    const { t } = this;
    this.answers = this.study.questions.map(() => null);
    const summary = make("div", { id: "missing", tabindex: "-1" });
    const finish = (event) => this.finish(event.timeStamp, summary);
    const send = make("button", { type: "button", id: "send", onclick: finish },
      this.saved ? t.save : t.send);
    this.answered = () => summary.hasChildNodes() && this.listMissing(summary);
    this.show("questions", this.heading(t.questions), make("p", {}, t.all),
      ...this.study.questions.map((question, q) => this.question(question, q)), summary, send);
  }

  question(question, q) {
    const { t } = this;
    const words = question.texts[this.language];
    const binned = question.edges === null ? 0 : question.edges.length - 1;
    const inputs = [];
    if (binned) inputs.push(this.numberInput(question, q));
    words.labels.slice(binned).forEach((label, j) => {
      const id = `q${q}-${j}`;
      const input = make("input", {
        type: "radio", id, name: `q${q}`, autocomplete: "off",
        onchange: () => {
          this.answers[q] = binned + j;
          this.answered();
          const number = document.getElementById(`q${q}-number`);
          if (number !== null) number.value = "";
        },
      });
      inputs.push(make("div", { class: "choice" }, input, make("label", { for: id, dir: "auto" }, label)));
    });
    return make("fieldset", { id: `q${q}` },
      make("legend", { dir: "auto" }, words.text),
      words.help ? foreign(words.help, "p") : null,
      ...inputs, this.protection(question, words));
  }

  numberInput(question, q) {
    const { t } = this;
    const edges = question.edges;
    const [low, high] = [edges[0], edges[edges.length - 1]];
    const input = make("input", {
      type: "text", inputmode: "decimal", id: `q${q}-number`, autocomplete: "off", dir: "ltr",
      "aria-describedby": `q${q}-range`,
      oninput: () => {
        const value = /^\s*-?\d+([.,]\d+)?\s*$/.test(input.value) ? Number(input.value.replace(",", ".")) : NaN;
        const inside = value >= low && value <= high;
        const interval = edges.findIndex((edge, j) => j > 0 && value < edge) - 1;
        this.answers[q] = inside ? (value === high ? edges.length - 2 : interval) : null;
        if (input.value !== "") {
          document.querySelectorAll(`#q${q} input[type=radio]`).forEach((radio) => (radio.checked = false));
        }
        this.answered();
      },
    });
    return make("div", { class: "choice" },
      make("label", { for: `q${q}-number` }, t.number), " ", input, " ",
      make("span", { id: `q${q}-range` }, t.from(low, high)));
  }

  /** How often an answer is sent as it is, in words and in dots. */
  protection(question, words) {
    const { t } = this;
    const place = this.names.indexOf(question.attribute);
    const row = this.found.rows[place];
    if (row.asItIs) return this.note(t.asItIs);
    const whole = question.stride === 1 && words.labels.length === this.study.sizes[place];
    let lines;
    if (row.send !== null && whole) {
      lines = words.labels.map((label, x) => {
        const named = row.send.length === words.labels.length;
        const parts = row.send.map((line, y) =>
          t.dotsPart(Math.round(100 * line[x]), named ? words.labels[y] : t.answerNumber(y + 1)));
        return make("p", { dir: "auto" }, t.dotsMany(label, parts.join(", ")));
      });
    } else {
      lines = [this.dots(words.labels[0], Math.round(100 * this.kept100(row, place, question, words)))];
    }
    return make("details", {}, make("summary", {}, t.protect), ...lines.flat());
  }

  /** How likely a column is sent as it was answered: a part of a merged attribute also by chance. */
  kept100(row, place, question, words) {
    const n = this.study.sizes[place];
    const alike = n / words.labels.length; // combinations that agree with the part
    return row.keep + ((1 - row.keep) * (alike - 1)) / (n - 1);
  }

  dots(answer, same) {
    const { t } = this;
    const picture = make("div", { class: "dots", "aria-hidden": "true" },
      ...Array.from({ length: 100 }, (_, i) => make("i", { class: i < same ? "same" : "other" })));
    return make("div", {}, make("p", {}, ...isolated((a) => t.dots(a, same), answer)), picture);
  }

  // --- one draw -------------------------------------------------------------------------------

  /** Lists the questions that have no answer, and returns whether there are any. */
  listMissing(summary) {
    const { t } = this;
    const missing = this.answers.flatMap((answer, q) => (answer === null ? [q] : []));
    summary.replaceChildren();
    if (missing.length === 0) return false;
    summary.append(make("p", {}, t.missing), make("ul", {}, ...missing.map((q) => {
      const question = this.study.questions[q];
      const edges = question.edges;
      const typed = document.getElementById(`q${q}-number`)?.value;
      const hint = typed ? ` ${t.badNumber(edges[0], edges[edges.length - 1])}` : "";
      const go = () => document.querySelector(`#q${q} input`).focus();
      return make("li", {}, make("button", { type: "button", class: "link", onclick: go },
        foreign(question.texts[this.language].text)), hint);
    })));
    return true;
  }

  finish(clicked, summary) {
    if (this.listMissing(summary)) return summary.focus();
    const codes = this.study.sizes.map(() => 0);
    this.study.questions.forEach((question, q) => {
      codes[this.names.indexOf(question.attribute)] += this.answers[q] * question.stride;
    });
    this.erase();
    this.show("sending", this.heading(this.t.sending));
    return this.inTurn(async () => {
      const kept = await this.kept.read();
      const used = await (await this.link(this.token))?.read();
      const taken = used || (kept !== null && !(kept.state === "answered" && this.study.shared_device));
      const drawn = taken ? null : this.sampler.draw(codes, this.source);
      codes.fill(0);
      if (taken) return false;
      this.own = hex(this.source.bytes(16));
      await this.kept.write({
        state: "drawn",
        receipt: this.own,
        body: JSON.stringify({
          study: this.identity,
          token: this.invited ? this.token : "",
          receipt: await digest(new TextEncoder().encode(this.own)),
          record: drawn.map((code, i) => code.toString(16).padStart(this.digits[i], "0")).join(""),
        }),
      });
      await new Promise((done) => setTimeout(done, Math.max(0, WAIT - (performance.now() - clicked))));
      return this.post(0);
    });
  }

  /** Does something while no other tab does, and starts again where it was not for this person. */
  async inTurn(work) {
    if (!(await this.kept.alone(work))) return this.resume();
  }

  /** Forgets true answers: in memory, and in the inputs, which are taken out of the document. */
  erase() {
    if (this.answers === null) return;
    this.answers.fill(null);
    this.answers = null;
    for (const input of app.querySelectorAll("input")) {
      input.checked = false;
      if (input.type === "text") input.value = "";
    }
    app.replaceChildren();
  }

  /** Sends what was drawn before: after a reload, a crash or a failure. */
  deliver() {
    this.show("sending", this.heading(this.t.sending));
    return this.inTurn(async () => (await this.kept.read())?.state === "drawn" && this.post(0));
  }

  /** Whether what is kept was drawn for who is here: always, but on a device of several people. */
  isOwn(kept) {
    if (!this.study.shared_device || kept.receipt === this.own) return true;
    return this.invited && JSON.parse(kept.body).token === this.token;
  }

  /** Sends what is kept until there is an answer; false if it was another person's, and nothing
   * of it is shown. */
  async post(failures) {
    let kept = await this.kept.read();
    if (kept.unknown && TOKEN.test(this.token)) {
      // The draw stays; only the invitation that it is sent with is another.
      kept = { ...kept, body: JSON.stringify({ ...JSON.parse(kept.body), token: this.token }) };
    }
    if (this.saved) return this.showFile(kept);
    let response;
    try {
      response = await fetch("submissions", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: kept.body,
        credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      });
    } catch {
      response = { status: 0 };
    }
    const { status } = response;
    if (status === 0 || status === 429 || status >= 500) return this.showRetry(failures + 1);
    const said = await response.json().then((answer) => answer.error ?? "", () => "");
    const taken = status === 200 || status === 201;
    const decided = await this.settle(kept, taken ? 201 : said && status);
    if (this.isOwn(kept) || !decided) {
      if (taken) this.showDone(kept, this.t.done);
      else this.showNotTaken(decided ? status : 0, said || String(status));
    } else if (taken && !this.invited) {
      this.showArrived();
    } else {
      return false;
    }
    return true;
  }

  /** Keeps what follows from the study's answer, and returns whether it has decided on the form.
   * What was drawn is never drawn again: it waits, if need be for the right link, or counts as
   * answered. On a device of several people nothing that was decided on stays but the decision. */
  async settle(kept, status) {
    const shared = this.study.shared_device;
    const ended = status === 201 || status === 409;
    const decided = ended || status === 410 || (status === 403 && this.invited);
    if (decided && shared) {
      if (status !== 410) await (await this.link(JSON.parse(kept.body).token))?.write({ status });
      await this.kept.write(status === 410 ? { state: "closed" } : null);
    } else {
      const waiting = { ...kept, unknown: status === 403 };
      await this.kept.write(ended ? { state: "answered", receipt: kept.receipt } : waiting);
    }
    return decided;
  }

  showRetry(failures) {
    let settle;
    const next = new Promise((done) => (settle = done));
    const wait = setTimeout(settle, Math.min(60, 2 ** failures) * 1000);
    const now = () => {
      clearTimeout(wait);
      settle();
    };
    addEventListener("online", now, { once: true });
    this.show("retry", this.heading(this.t.retry),
      this.kept.lasting ? null : this.note(this.t.keepOpen), make("button", { type: "button", id: "again", onclick: now }, this.t.again));
    return next.then(() => {
      this.show("sending", this.heading(this.t.sending));
      return this.post(failures);
    });
  }

  sentTable(kept) {
    const text = JSON.parse(kept.body).record;
    let at = 0;
    const codes = this.digits.map((digits) => parseInt(text.slice(at, (at += digits)), 16));
    return [
      make("h2", {}, this.t.sentTitle),
      make("p", { class: "note" }, this.t.notYours),
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": this.t.sentTitle },
        make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, this.t.question),
          make("th", { scope: "col" }, this.t.sent))), make("tbody", {}, ...this.rows(codes)))),
    ];
  }

  receipt(receipt) {
    return [
      make("h2", {}, this.t.receipt),
      make("p", {}, make("code", { id: "receipt", dir: "ltr" }, receipt.match(/.{4}/g).join(" "))),
      make("p", {}, this.t.receiptHelp),
    ];
  }

  showFile(kept) {
    const { t } = this;
    const handed = () => this.study.shared_device && this.settle(kept, 201);
    const file = make("a", { id: "file", download: "record.json", onclick: handed,
      href: URL.createObjectURL(new Blob([kept.body + "\n"], { type: "application/json" })) }, t.saveFile);
    this.show("file", this.heading(t.saveTitle), make("p", {}, file), make("p", {}, t.doneSaved),
      ...(this.isOwn(kept) ? [...this.sentTable(kept), ...this.receipt(kept.receipt)] : []));
    return true;
  }

  /** Why the form was not taken, and what comes of it: never another draw. */
  showNotTaken(status, said = "") {
    const { t } = this;
    const reason = { 403: t.unknown, 409: t.spent, 410: t.closed }[status];
    const burnt = status === 403 && this.study.shared_device;
    const waits = !burnt && status !== 409 && status !== 410 && this.kept.lasting;
    this.show("not-taken", this.heading(reason ?? t.notTaken),
      reason ? null : make("p", { dir: "ltr", lang: "en" }, said),
      burnt ? make("p", {}, t.otherLink) : null,
      waits ? make("p", {}, t.waits) : null,
      foreign(this.words.contact, "p"));
  }

  /** On a device of several people: a form was sent, and nobody knows whether its sender is here. */
  showArrived() {
    this.show("arrived", this.heading(this.t.arrived),
      make("button", { type: "button", id: "another", onclick: () => this.showIntroduction() }, this.t.another));
  }

  showDone(kept, title) {
    this.show("done", this.heading(title), ...this.sentTable(kept), ...this.receipt(kept.receipt),
      this.withdrawal(kept.receipt));
  }

  showAnswered(receipt) {
    this.show("answered", this.heading(this.t.answered), make("p", {}, this.t.answeredHelp),
      ...(receipt === null ? [] : this.receipt(receipt)),
      this.saved || receipt === null ? null : this.withdrawal(receipt));
  }

  withdrawal(receipt) {
    const { t } = this;
    const said = make("p", { role: "status" });
    const withdraw = async () => {
      let status = 0;
      try {
        const body = JSON.stringify({ study: this.identity, receipt });
        ({ status } = await fetch("withdrawals", {
          method: "POST", headers: { "Content-Type": "application/json" }, body,
          credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
        }));
      } catch {
        status = 0;
      }
      said.replaceChildren(status === 200 ? t.withdrawn : `${t.withdrawFailed} `,
        ...(status === 200 ? [] : [foreign(this.words.contact)]));
    };
    return make("details", { id: "withdraw" }, make("summary", {}, t.withdraw), make("p", {}, t.withdrawHelp),
      make("button", { type: "button", onclick: withdraw }, t.withdrawNow), said);
  }
}

new Page(document.getElementById("study").textContent).start();
