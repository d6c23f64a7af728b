// Elements of the page: text is always set as text, never as markup.

/** Makes an element with attributes, listeners (`on…`) and children. */
export function make(tag, attributes = {}, ...children) {
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
export const foreign = (text, tag = "bdi") => make(tag, { dir: "auto" }, text);

/** Inserts foreign text into a text of the page, isolating the direction of each. */
export function isolated(sentence, ...pieces) {
  const marks = pieces.map((_, i) => `\u0001${i}\u0002`);
  const parts = sentence(...marks).split(/\u0001(\d+)\u0002/);
  return parts.map((part, i) => (i % 2 ? foreign(pieces[Number(part)]) : part));
}

/** A remark in a frame. */
export const note = (text) => make("p", { class: "note" }, text);
