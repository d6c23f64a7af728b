// The page: explains, asks, draws once, sends once.

import { checkStatements, posterior } from "./account.js";
import { foreign, make, note } from "./elements.js";
import { Form } from "./form.js";
import { SystemBits } from "./randomness.js";
import { codesOf, Sampler } from "./sampler.js";
import { Kept } from "./storage.js";
import { TEXTS } from "./texts.js";

const TOKEN = /^[0-9a-f]{32}$/;
const WAIT = 500; // milliseconds from the click to the first request, for all answers
const PATIENCE = 3000; // milliseconds to wait for the state of the study
const MUCH = Math.log(100); // nats above which respondents are warned
const app = document.getElementById("app");

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function digest(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** Sends a request to the study, without cookies, referrer or cache; returns the response. */
function request(path, body = null) {
  return fetch(path, {
    ...(body === null ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body }),
    credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
  });
}

class Page {
  constructor(text) {
    this.text = text;
    this.study = JSON.parse(text);
    this.saved = location.protocol === "file:";
    this.token = location.hash.slice(1);
    const asked = this.study.languages.find((code) => navigator.language.startsWith(code));
    this.language = asked ?? this.study.languages[0];
    this.form = null;
    this.source = new SystemBits();
  }

  get t() {
    const texts = TEXTS[this.language.split("-")[0]] ?? TEXTS.en;
    return this.saved ? { ...texts, ...texts.fileOnly } : texts;
  }

  get words() {
    return this.study.texts[this.language];
  }

  /** A number in this language, in the digits of the page's texts. */
  say(number, digits = 10) {
    const format = { numberingSystem: "latn", useGrouping: false, maximumFractionDigits: digits };
    return number.toLocaleString(this.language, format);
  }

  /** The decimal mark of this language. */
  get decimal() {
    return this.say(0.5).replace(/[\d\p{Cf}]/gu, "");
  }

  get day() {
    return this.date(Date.parse(this.study.closes) / 86400000);
  }

  /** A date, by its days since 1970-01-01, in this language. */
  date(days) {
    const format = { dateStyle: "long", timeZone: "UTC", numberingSystem: "latn" };
    return new Date(days * 86400000).toLocaleDateString(this.language, format);
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
    history.replaceState({ step: "introduction" }, "");
    addEventListener("popstate", (event) => this.turn(event.state?.step));
    addEventListener("beforeunload", (event) => {
      const drawn = !this.kept.lasting && this.kept.memory?.state === "drawn";
      if (!(drawn || this.form?.started)) return;
      event.preventDefault(); // the browser confirms leaving; older ones need a value
      event.returnValue = drawn ? this.t.keepOpen : this.t.inMemory;
    });
    addEventListener("pagehide", () => this.erase());
    addEventListener("hashchange", () => {
      // Another link in the same tab; a drawn record that cannot be stored remains.
      if (this.kept.lasting || this.kept.memory === null) location.reload();
    });
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    await this.resume();
  }

  /** Checks the study before any question or draw: its statements are computed from its law. */
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
    if (kept?.state === "withdrawn") return this.showWithdrawn();
    if (kept?.state === "answered" && !this.study.shared_device) return this.showAnswered(kept.receipt);
    const ended = await (await this.link(this.token))?.read();
    if (ended?.withdrawn) return this.showWithdrawn();
    if (ended) return ended.status === 201 ? this.showAnswered(null) : this.showNotTaken(ended.status);
    this.show("checking", this.heading(this.t.checking));
    const closed = await this.closed();
    if (closed !== null) return this.showClosed(closed);
    if (this.invited && !TOKEN.test(this.token)) {
      return this.show("no-token", this.heading(this.words.title), make("p", {}, this.t.noToken));
    }
    return this.showIntroduction();
  }

  /** The source of the information that the study is closed, null if it is open: the study, or if
   * unreachable, the clock of this device. It is open while its last day has not ended anywhere. */
  async closed() {
    if (!this.saved) {
      const late = new Promise((done) => setTimeout(done, PATIENCE, null));
      const asked = request("readyz").then((response) => response.json()).catch(() => null);
      const status = (await Promise.race([asked, late]))?.status;
      if (status === "open" || status === "closed") return status === "open" ? null : "study";
    }
    const end = Date.parse(`${this.study.closes}T00:00:00Z`) + 36 * 3600_000;
    return Date.now() < end ? null : "clock";
  }

  get invited() {
    return this.study.respondents === "invited";
  }

  /** On a shared device, the outcome of one invitation's form, under the hash of its token, without
   * the sent record. */
  async link(token) {
    if (!(this.study.shared_device && this.invited)) return null;
    return Kept.of(`${this.identity} ${await digest(new TextEncoder().encode(token))}`);
  }

  // --- views ----------------------------------------------------------------------------------

  heading(text) {
    return make("h1", { tabindex: "-1", dir: "auto" }, text);
  }

  show(state, ...children) {
    document.title = this.words.title;
    document.documentElement.lang = this.language;
    document.documentElement.dir = this.study.right_to_left.includes(this.language) ? "rtl" : "ltr";
    app.replaceChildren(...this.languages(state), ...children.filter((child) => child !== null));
    app.dataset.state = state;
    app.querySelector("h1")?.focus();
  }

  languages(state) {
    const shown = { introduction: () => this.showIntroduction(), questions: () => this.showQuestions() };
    if (this.study.languages.length < 2 || !(state in shown)) return [];
    const choose = make(
      "select",
      {
        id: "language",
        onchange: (event) => {
          this.language = event.target.value;
          shown[state]();
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

  /** The label of the drawing button, as the texts quote it. */
  get button() {
    return this.saved ? this.t.save : this.t.send;
  }

  showIntroduction() {
    const { t, words } = this;
    const unswapped = this.found.rows.some((row) => row.asItIs);
    this.show(
      "introduction",
      this.heading(words.title),
      foreign(words.purpose, "p"),
      make("h2", {}, t.who),
      foreign(words.contact, "p"),
      make("p", {}, t.closes(this.day)),
      make("h2", {}, t.what),
      make("ol", {}, ...t.happens(this.button).map((line) => make("li", {}, line))),
      this.numbers(),
      make("h2", {}, t.chancesTitle),
      make("ul", { class: "chances" }, ...[100, 2].map((n) => make("li", {}, this.chance(n)))),
      this.found.epsilon > MUCH ? make("p", {}, t.much) : null,
      unswapped ? note(t.someAsItIs) : null,
      this.trying(),
      ...words.consent.map((paragraph) => foreign(paragraph, "p")),
      this.saved ? note(t.saved) : null,
      this.study.shared_device ? note(t.sharedDevice) : null,
      this.kept.lasting ? null : note(t.cannotStore),
      this.form?.started ? note(t.inMemory) : null,
      make("button", { type: "button", id: "agree", onclick: () => this.agree() },
        this.form === null ? t.agree : t.goOn),
      make("p", { class: "code" }, `${t.code}: `,
        make("code", { dir: "ltr" }, this.identity.match(/.{8}/g).join(" ")), make("br"), t.codeHelp),
    );
  }

  /** The remark on rounding, where a question is about a number. */
  numbers() {
    return this.study.questions.some(({ grid }) => grid) ? make("p", {}, this.t.numbers) : null;
  }

  /** The largest chance after a belief of one in n. */
  chance(n) {
    const most = posterior(1 / n, this.found.epsilon);
    return this.t.chance(this.t.oneIn(n), most < 100 ? this.t.inHundred(this.say(most)) : null);
  }

  /** Shows the questions as a new history entry, so that Back returns here. */
  agree() {
    history.pushState({ step: "questions" }, "");
    this.showQuestions();
  }

  /** Follows Back and Forward until the draw. */
  turn(step) {
    if (step === "questions" && app.dataset.state === "introduction") this.showQuestions();
    else if (step !== "questions" && app.dataset.state === "questions") this.showIntroduction();
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
      const { labels, answers = [] } = question.texts[this.language];
      if (released && answers.length) return answers[codes[place]];
      if (released && this.study.outputs[place] !== this.study.sizes[place]) {
        return this.t.answerNumber(codes[place] + 1);
      }
      return labels[Math.floor(codes[place] / question.stride) % labels.length];
    });
  }

  rows(codes, before = null) {
    return this.readable(codes).map((sent, i) => {
      const question = this.study.questions[i];
      const unswapped = this.found.rows[this.names.indexOf(question.attribute)].asItIs;
      return make("tr", {},
        make("th", { scope: "row", dir: "auto" }, question.texts[this.language].text),
        before === null ? null : make("td", { dir: "auto" }, before[i]),
        make("td", {}, foreign(sent), unswapped ? ` (${this.t.unswapped})` : ""));
    });
  }

  showQuestions() {
    const { t } = this;
    this.form ??= new Form(this.study, this.found, this.names);
    this.show("questions", this.heading(t.questions), make("p", {}, t.all), note(t.inMemory),
      ...this.form.elements(this),
      make("div", { class: "buttons" },
        make("button", { type: "button", id: "send", onclick: (event) => this.finish(event.timeStamp) }, this.button),
        make("button", { type: "button", id: "explanation", class: "second", onclick: () => history.back() }, t.back)));
  }

  // --- one draw -------------------------------------------------------------------------------

  finish(clicked) {
    if (this.form.mark()) return this.form.summary.focus();
    const answers = [...this.form.answers];
    this.erase();
    this.show("sending", this.heading(this.t.sending));
    return this.inTurn(async () => {
      const kept = await this.kept.read();
      const used = await (await this.link(this.token))?.read();
      const taken = used || (kept !== null && !(kept.state === "answered" && this.study.shared_device));
      const codes = taken ? [] : codesOf(this.study.questions, this.names, answers, this.source);
      const drawn = taken ? null : this.sampler.draw(codes, this.source);
      answers.fill(null);
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

  /** Runs exclusively among tabs, and starts again if it was not for this person. */
  async inTurn(work) {
    if (!(await this.kept.alone(work))) return this.resume();
  }

  /** Erases true answers, and removes their inputs from the document. */
  erase() {
    if (this.form === null) return;
    this.form.erase();
    this.form = null;
    app.replaceChildren();
  }

  /** Sends an earlier draw: after a reload, a crash or a failure. */
  deliver() {
    this.show("sending", this.heading(this.t.sending));
    return this.inTurn(async () => (await this.kept.read())?.state === "drawn" && this.post(0));
  }

  /** Whether the stored draw is for the present invitation: always, except on a shared device. */
  isOwn(kept) {
    if (!this.study.shared_device || kept.receipt === this.own) return true;
    return this.invited && JSON.parse(kept.body).token === this.token;
  }

  /** Sends the stored draw until there is a response; false, without display, if it was another
   * person's. */
  async post(failures) {
    let kept = await this.kept.read();
    if (kept.unknown && TOKEN.test(this.token)) {
      // The draw remains; only its invitation is replaced.
      kept = { ...kept, body: JSON.stringify({ ...JSON.parse(kept.body), token: this.token }) };
    }
    if (this.saved) return this.showFile(kept);
    let response;
    try {
      response = await request("submissions", kept.body);
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
      else this.showNotTaken(decided ? status : 0, said || String(status), kept.receipt);
    } else if (taken && !this.invited) {
      this.showArrived();
    } else {
      return false;
    }
    return true;
  }

  /** Stores the outcome of the response, and returns whether it is final. A draw is never repeated:
   * it waits, if necessary for the right link, or counts as answered. On a shared device only a
   * final outcome remains. */
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
      this.kept.lasting ? null : note(this.t.keepOpen), make("button", { type: "button", id: "again", onclick: now }, this.t.again));
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
      make("p", { class: "note" }, this.t.swapped),
      this.numbers() ?? "",
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

  /** The reason for a rejection, and its consequence: never another draw. A closed study does not
   * reveal whether the form had arrived before; the receipt withdraws it if it had. */
  showNotTaken(status, said = "", receipt = null) {
    const { t } = this;
    const reason = { 403: t.unknown, 409: t.spent, 410: t.closed }[status];
    const burnt = status === 403 && this.study.shared_device;
    const waits = !burnt && status !== 409 && status !== 410 && this.kept.lasting;
    this.show("not-taken", this.heading(reason ?? t.notTaken),
      reason ? null : make("p", { dir: "ltr", lang: "en" }, said),
      burnt ? make("p", {}, t.otherLink) : null,
      waits ? make("p", {}, t.waits) : null,
      foreign(this.words.contact, "p"),
      ...(status === 410 && receipt ? [...this.receipt(receipt), this.withdrawal(receipt)] : []));
  }

  showClosed(by) {
    const { t } = this;
    this.show("closed", this.heading(t.closedTitle), by === "clock" ? make("p", {}, t.byClock(this.day)) : null,
      make("p", {}, t.closedBefore), foreign(this.words.contact, "p"));
  }

  /** On a shared device: a form was sent, of the present respondent or another. */
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

  showWithdrawn() {
    this.show("withdrawn", this.heading(this.t.withdrawn), make("p", {}, this.t.withdrawnHelp));
  }

  withdrawal(receipt) {
    const { t } = this;
    const said = make("p", { role: "status" });
    const withdraw = async () => {
      button.disabled = true;
      said.replaceChildren();
      const body = JSON.stringify({ study: this.identity, receipt });
      const { status } = await request("withdrawals", body).catch(() => ({ status: 0 }));
      if (status === 200) {
        await this.remember();
        return this.showWithdrawn();
      }
      button.disabled = false;
      said.replaceChildren(status === 404 ? t.noForm : `${t.withdrawFailed} `,
        status === 404 ? "" : foreign(this.words.contact));
    };
    const button = make("button", { type: "button", onclick: withdraw }, t.withdrawNow);
    return make("details", { id: "withdraw" }, make("summary", {}, t.withdraw),
      make("p", {}, t.withdrawHelp), button, said);
  }

  /** Stores the withdrawal in place of the receipt. */
  async remember() {
    if (!this.study.shared_device) return this.kept.write({ state: "withdrawn" });
    return (await this.link(this.token))?.write({ status: 201, withdrawn: true });
  }
}

new Page(document.getElementById("study").textContent).start();
