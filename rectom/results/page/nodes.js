// Elements. Whatever comes from a story, a model or a file is added as text, never read as markup.

const at = (id) => document.getElementById(id);

// An element of a class, with texts and nodes in it.
function make(name, style, ...children) {
  const node = document.createElement(name);
  if (style) node.className = style;
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// An element with attributes.
function given(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// Text that may break behind the joints of a name.
const soft = (text) => text.split(/(?<=[_,({])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));

const HUES = { red: 4, orange: 28, yellow: 50, green: 140, blue: 215, purple: 275, pink: 325 };

// Hues by name: a container that is called after a colour gets a shade of it, its namesakes in the story others.
function hues(names) {
  const found = new Map();
  const seen = {};
  for (const name of [...names].sort()) {
    const word = name.split(/[_ ]/)[0];
    const base = Object.hasOwn(HUES, word) ? HUES[word] : undefined;
    const rank = (seen[base] = (seen[base] ?? -1) + 1);
    found.set(name, base === undefined ? (rank * 137 + 30) % 360 : base + Math.ceil(rank / 2) * (rank % 2 ? 8 : -8));
  }
  return found;
}

function chip(name, shades) {
  const node = make("span", "chip", soft(name));
  if (shades.has(name)) node.style.setProperty("--hue", shades.get(name));
  else node.classList.add("plain");
  return node;
}

const held = (names, shades) =>
  names.length ? names.map((name) => chip(name, shades)) : [make("span", "nothing", "nothing")];

function change(text) {
  const style = { "+": "plus", "-": "minus" }[text[0]] ?? "said";
  return make("li", style, soft(text.replace(/^-/, "−")));
}

const changes = (texts) => (texts.length ? make("ul", "changes", texts.map(change)) : null);

const KINDS = { right: "✓", wrong: "✗", failed: "!" };
const badge = (kind) => given(make("b", "badge " + kind, KINDS[kind]), { "aria-hidden": "true" });

const counted = (number) => number.toLocaleString("en");
