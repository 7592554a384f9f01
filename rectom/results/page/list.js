// The list of the questions, and the keys that move in it.

const links = new Map();

const marked = (question, runs) => runs.filter((place) => question.row[3][place]);

function told(question, runs) {
  const [, order] = question.row;
  const kinds = marked(question, runs).map((place) =>
    (data.runs.length > 1 ? data.runs[place].name + ": " : "") + question.row[3][place][0]);
  return `${question.id}${order === null ? "" : ", order " + order}, ${kinds.join(", ")}: ${question.text}`;
}

// Where an answer went wrong: the step that failed, or the step at fault.
const astray = ([, step, fault]) => (step ? `failed at ${step}` : fault);

function item(question, state, runs) {
  const [, order] = question.row;
  const badges = marked(question, runs).map((place) => {
    const kind = question.row[3][place][0];
    return given(badge(kind), { title: data.runs.length > 1 ? `${data.runs[place].name}: ${kind}` : kind });
  });
  const about = [question.id, order === null ? null : `order ${order}`, ...(runs.length === 1 ? [astray(question.row[3][runs[0]])] : [])];
  const link = make("a", "", make("span", "badges", badges),
    make("span", "", make("small", "muted", about.filter(Boolean).join(" · ")), question.text));
  links.set(question, link);
  return make("li", "", given(link, { href: address({ ...filtersOf(state), q: question.id }), "aria-label": told(question, runs) }));
}

function drawList(state) {
  const [shown, runs] = [fitting(state), regarded(state)];
  links.clear();
  at("list").replaceChildren(...shown.map((question) => item(question, state, runs)));
  at("count").textContent = `${shown.length} of ${data.questions.length}${index.parts.length > 1 ? " in this part" : ""}`;
}

// The tab key comes into the list at one place: the question shown, or the first that is left.
function markCurrent(question) {
  const entry = links.has(question) ? question : links.keys().next().value;
  for (const [other, link] of links) {
    link.tabIndex = other === entry ? 0 : -1;
    if (other === question) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  const link = links.get(question);
  if (link) at("list").scrollTop = link.offsetTop - at("list").clientHeight / 2;
}

// Another question of the list, as many places further.
function step(question, by) {
  const shown = [...links.keys()];
  return shown[Math.max(0, shown.indexOf(question) + by)];
}

const isField = (node) => node.matches("input, select, textarea");

function press(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape" && event.target === at("text")) return links.get(current)?.focus();
  if (isField(event.target)) return;
  if (event.key === "/") {
    event.preventDefault();
    return at("text").focus();
  }
  const inside = at("list").contains(event.target);
  if (event.key === "Enter" && inside) return enterDetail(event);
  const by = { j: 1, k: -1, ...(inside ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (by) moveBy(by, inside, event);
}

function moveBy(by, inside, event) {
  const next = step(current, by);
  event.preventDefault();
  if (!next || next === current) return;
  go({ q: next.id, call: "" }, true);
  if (inside) links.get(next).focus({ preventScroll: true });
}

// Enter in the list goes on into the question.
function enterDetail(event) {
  const question = [...links].find(([, link]) => link === event.target)?.[0];
  if (question === current) event.preventDefault();
  else go({ q: question.id, call: "" });
  at("detail").focus();
}
