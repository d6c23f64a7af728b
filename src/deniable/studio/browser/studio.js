// What a form cannot do by itself. No number is computed here but a slider's place.
"use strict";
htmx.config.allowEval = false;
htmx.config.includeIndicatorStyles = false;
const answers = () => document.getElementById("answers");
let seen = document.getElementById("body").dataset.version;

// A slider moves by equal factors: its 1,000 steps are those of the logarithm.
const box = (slider) => document.getElementById(slider.dataset.of);
const scale = (slider) => [Math.log(slider.dataset.low), Math.log(slider.dataset.high)];
function place(slider) {
  const [low, high] = scale(slider);
  const value = Number((box(slider).value || box(slider).placeholder).replace(",", "."));
  if (value > 0) slider.value = 1000 * (Math.log(value) - low) / (high - low);
  slider.setAttribute("aria-valuetext", box(slider).value);
}
function placeAll() {
  for (const slider of document.querySelectorAll("input[type=range]")) {
    slider.hidden = false;
    place(slider);
  }
}
document.addEventListener("input", (event) => {
  const moved = event.target;
  if (moved.type === "range") {
    const [low, high] = scale(moved);
    const value = Math.exp(low + (high - low) * moved.value / 1000);
    const digits = moved.dataset.whole ? 2 : 3;
    box(moved).value = String(Number(value.toPrecision(digits)));
    moved.setAttribute("aria-valuetext", box(moved).value);
  } else {
    const slider = document.querySelector(`input[type=range][data-of="${CSS.escape(moved.id)}"]`);
    if (slider) place(slider);
  }
  // What stands there is of another wish from now on.
  if (moved.closest("#wish") && answers()) stale();
});
function stale() {
  answers().classList.add("stale");
  answers().setAttribute("aria-busy", "true");
}
document.addEventListener("change", (event) => {
  if (event.target.matches("select") && event.target.closest("#wish") && answers()) stale();
});

// An answer that was overtaken by a later one is not shown.
const version = (xhr) => xhr.getResponseHeader("X-Version");
document.addEventListener("htmx:beforeSwap", (event) => {
  const theirs = version(event.detail.xhr);
  if (theirs === null) return;
  if (BigInt(theirs) < BigInt(seen)) event.detail.shouldSwap = false;
  else seen = theirs;
});
document.addEventListener("htmx:afterSettle", placeAll);
// A request that was lost is sent again.
for (const lost of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(lost, (event) => {
    const from = event.detail.elt;
    if (from.id === "wish" || from.id === "answers") {
      setTimeout(() => htmx.trigger("#wish", "again"), 1000);
    }
  });
}

// Somebody else, or another window, may have changed the draft; or the program has ended.
async function look() {
  let elsewhere = false;
  let ended = false;
  try {
    const answer = await fetch("/alive");
    if (answer.ok) elsewhere = BigInt((await answer.json()).version) > BigInt(seen);
    else ended = true;
  } catch {
    ended = true;
  }
  document.getElementById("elsewhere").hidden = !elsewhere;
  document.getElementById("ended").hidden = !ended;
}
setInterval(look, 5000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
placeAll();
