// Behaviour beyond HTML forms. The only number computed here is a slider's position.
"use strict";
Object.assign(htmx.config, {
  allowEval: false,
  includeIndicatorStyles: false,
  defaultSettleDelay: 0, // what was typed meanwhile would be undone
  historyCacheSize: 0, // nothing of the page is kept in the browser
  refreshOnHistoryMiss: true,
});
const at = (id) => document.getElementById(id);

// A slider has 1,000 steps on a logarithmic scale.
const scale = (slider) => [Math.log(slider.dataset.low), Math.log(slider.dataset.high)];
function place(slider) {
  const [low, high] = scale(slider);
  const { value, placeholder } = at(slider.dataset.of);
  const group = new RegExp(`[\\s${at("body").dataset.separators[1]}](?=\\d{3}(\\D|$))`, "g");
  const number = Number((value || placeholder).replace(group, "").replace(",", "."));
  slider.value = number > 0 ? 1000 * (Math.log(number) - low) / (high - low) : 0;
  slider.setAttribute("aria-valuetext", value);
}
function type(slider) {
  const [low, high] = scale(slider);
  const number = Math.exp(low + (high - low) * slider.value / 1000);
  const text = String(Number(number.toPrecision(slider.dataset.whole ? 2 : 3)))
    .replace(".", at("body").dataset.separators[0]);
  at(slider.dataset.of).value = text;
  slider.setAttribute("aria-valuetext", text);
}
function dress() {
  for (const slider of document.querySelectorAll("input[type=range]")) {
    slider.hidden = false;
    place(slider);
  }
  for (const said of document.querySelectorAll("#request .problem")) {
    const control = document.querySelector(`[aria-describedby~="${CSS.escape(said.id)}"]`);
    if (said.textContent.trim()) control?.setAttribute("aria-invalid", "true");
    else control?.removeAttribute("aria-invalid");
  }
}

// Results match the controls. A turn starts with any input or press: responses of earlier turns are
// discarded, and shown results are greyed at once. `seen` is the draft last shown by the page; a
// response without a step is discarded for any other draft.
function outdateAnswers() {
  at("answers")?.classList.add("stale");
  at("answers")?.setAttribute("aria-busy", "true");
}

// The result of a form changed or sent again belongs to the earlier request.
function outdate(form) {
  const step = form?.querySelector("button.main[name=do]")?.value;
  const result = step && document.querySelector(`#job-${step} > .result`);
  if (!result) return;
  result.classList.add("stale");
  result.querySelector(".outdated").hidden = false;
}

let turn = 0;
let seen = at("body").dataset.draft;
let steps = 0; // on their way
let typed = false; // since the last accepted response: the server's draft may be the previous one
const tab = crypto.randomUUID(); // what this page changed last it may change again
let pause = 0;
const turns = new WeakMap();
document.addEventListener("input", (event) => {
  const moved = event.target;
  if (!at("said").querySelector("form")) at("said").replaceChildren(); // it was of what stood there
  if (moved.type === "range") type(moved);
  else document.querySelectorAll(`[data-of="${CSS.escape(moved.id)}"]`).forEach(place);
  outdate(moved.form);
  if (!moved.closest("#request") || moved.name.startsWith("table.")) return;
  turn += 1;
  typed = true;
  outdateAnswers();
  document.querySelector("#request > .notice[role=status]")?.remove(); // of the previous request
  clearTimeout(pause);
  // Another choice may change the controls.
  if (moved.matches("select, [type=radio]")) at("compute").click();
  else pause = setTimeout(() => htmx.trigger("#live", "again"), moved.type === "range" ? 100 : 60);
});
document.addEventListener("htmx:configRequest", ({ detail }) => {
  // htmx ignores a button outside its form.
  const button = detail.triggeringEvent?.submitter;
  if (button) detail.parameters[button.name] = button.value;
  if (detail.verb !== "post") return;
  Object.assign(detail.parameters, { draft: seen, tab });
  if (!button?.value.startsWith("speak ")) return;
  // Typed values of all forms are retained in the other language.
  for (const field of document.querySelectorAll("main [id][name]:not([name^='w.'], button)")) {
    const { id, type, value, checked } = field;
    detail.parameters[`kept.${id}`] = type === "checkbox" && !checked ? "" : value;
  }
});
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (detail.requestConfig.verb === "post") {
    steps += 1;
    if (detail.elt.id !== "live") {
      turn += 1;
      if (detail.elt.id === "request") outdateAnswers();
      else outdate(detail.elt);
    }
    if (detail.elt.id === "request") clearTimeout(pause);
  }
  turns.set(detail.xhr, typed && detail.requestConfig.verb === "get" ? -1 : turn);
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.requestConfig.verb === "post") steps -= 1;
  else if (detail.xhr.status === 204) again(detail.elt);
});
let left = {};
let inJob = false;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { xhr, target, requestConfig } = detail;
  const theirs = xhr.getResponseHeader("X-Draft");
  inJob = target.contains(document.activeElement);
  if (theirs === null || /^(at|job)-/.test(target.id)) return;
  const unasked = target.id === "answers" && requestConfig.verb === "get" && theirs !== seen;
  if (unasked) look();
  if (unasked || turns.get(xhr) !== turn) {
    detail.shouldSwap = false;
    return;
  }
  seen = theirs;
  typed = false;
  at("refused").hidden = true;
  const { name, value } = document.activeElement;
  left = { name, value, view: at("body").dataset.view };
});
document.addEventListener("htmx:afterSwap", ({ target, detail }) => {
  if (target.id.startsWith("p-")) return; // a sentence beside a control: there may be hundreds
  dress();
  document.documentElement.lang = at("body").lang;
  const job = detail.target?.id.startsWith("job-") && at(detail.target.id);
  if (job) {
    at("announced").textContent = job.dataset.said ?? "";
    job.tabIndex = -1;
    if (inJob && document.activeElement === document.body) job.focus({ preventScroll: true });
  }
  if (document.activeElement !== document.body || detail.target?.id !== "body") return;
  // The pressed control was replaced, too.
  const here = at("body").dataset.view === left.view;
  const same = [...document.querySelectorAll("#body [name]:enabled")]
    .find((one) => here && one.name === left.name && one.value === left.value);
  const heading = document.querySelector("h1");
  heading.tabIndex = -1;
  (same ?? heading).focus({ preventScroll: here });
  if (!here) scrollTo(0, 0);
});

// Requests without a response are repeated; refusals are shown.
function again(from) {
  look();
  const which = from.id === "live" ? from : at("answers");
  if (which) setTimeout(() => htmx.trigger(which, "again"), 1000);
}
for (const lost of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(lost, ({ detail }) => again(detail.elt));
}
document.addEventListener("htmx:responseError", ({ detail }) => {
  const said = at("refused").lastElementChild;
  said.textContent = detail.xhr.responseText;
  said.lang = detail.xhr.getResponseHeader("Content-Language") ?? "en";
  at("refused").hidden = false;
  if (detail.requestConfig.verb === "post") again(at("answers") ?? at("body"));
});

// The draft may have changed elsewhere, or the program has stopped.
async function look() {
  const before = [turn, seen];
  let draft = null;
  try {
    const answer = await fetch("/alive");
    if (answer.ok) ({ draft } = await answer.json());
  } catch { /* it has ended */ }
  at("ended").hidden = draft !== null;
  const still = steps === 0 && before[0] === turn && before[1] === seen;
  if (still && draft !== null) at("elsewhere").hidden = draft === seen;
}
setInterval(look, 5000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
dress();
