// The model calls of an answer: one below the other, each opens to its prompt and its reply. A call is
// `[step, source, prompt, completion, reasoning, cached, seconds, outcome, repair, reply]`, a reply
// `[key, messages, text, reasoning, model]`; messages are `[role, text]`, texts by place.

const SOURCES = {
  sent: "sent to the server", cached: "cached: in the store before",
  shared: "shared: another question of the run had asked for it",
};
const replyOf = (call) => data.replies[call[9]];
const messagesOf = (reply) => reply[1].map(([role, place]) => [role, data.texts[place]]);

// Whose perspective a call is about, as the end of a chain: none for the world's, null where it is about no perspective.
// A prompt names the character, or whoever may trust a speaker, or says `what A thinks that B thinks`.
function madeFor(call) {
  if (call[0] === "abstract" || call[0] === "update") return [];
  if (!/^(observe|revise)/.test(call[0])) return null;
  const [, user] = messagesOf(replyOf(call)).at(1) ?? ["", ""];
  const said = /^(?:Character|Hearer|Belief of): (.*)$/m.exec(user)?.[1];
  return said ? said.replace(/^what | thinks$/g, "").split(" thinks that ") : null;
}

function isMadeFor(call, chain) {
  const who = madeFor(call);
  return who !== null && (who.length ? same(chain.slice(-who.length), who) : !chain.length);
}

// Links that lead to calls, and open them. In the second of two answers the key of a call has `2.` before it.
function linksToCalls(answer, number, wanted) {
  return answer.calls.filter(wanted).flatMap((call) => {
    const target = (number > 1 ? number + "." : "") + replyOf(call)[0];
    const link = given(make("a", "to-call", "↓ ", soft(call[0])), { title: "to the model call" });
    link.href = address({ ...chosen(), q: current.id, call: target });
    link.addEventListener("click", () => openCall(target));
    return [link, " "];
  });
}

const inline = (value) => JSON.stringify(value).replace(/,(?=["{[])/g, ", ");

// JSON as people write it: what fits a line stands on one.
function pretty(value, indent = "") {
  if (value === null || typeof value !== "object" || inline(value).length < 90) return inline(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const deeper = indent + "  ";
  const parts = Object.entries(value).map(([name, part]) =>
    deeper + (Array.isArray(value) ? "" : JSON.stringify(name) + ": ") + pretty(part, deeper));
  return [open, parts.join(",\n"), indent + close].join("\n");
}

function readable(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? pretty(value) : text;
  } catch {
    return text;
  }
}

// A text in a box of its own, which the keyboard can scroll.
const box = (name, text) => [make("h5", "", name),
  given(make("pre", "", text), { tabindex: "0", role: "region", "aria-label": name })];

function drawExchange(reply) {
  const [key, , text, reasoning, model] = reply;
  const messages = messagesOf(reply).flatMap(([role, said]) => box(`prompt: ${role}`, said));
  if (!messages.length && text === null) {
    return [make("p", "muted", "The prompt and the reply are not in the run's folder (calls.jsonl.gz).")];
  }
  const bare = "What was asked is not in the store: its replies came without (an archive made with --bare).";
  return [...messages.length ? messages : [make("p", "muted", bare)],
    ...(reasoning === null ? [] : box("reasoning", data.texts[reasoning])),
    ...(text === null ? [make("p", "muted", "There is no reply.")] : box("reply", readable(data.texts[text]))),
    make("p", "muted", [`key ${key}`, model ? `, by ${model}` : ""])];
}

function numbers([, source, prompt, completion, reasoning, cached, seconds, outcome, repair]) {
  const spent = [`${counted(prompt)} + ${counted(completion)} tokens`,
    cached ? `${counted(cached)} of the prompt cached by the server` : "", reasoning ? `${counted(reasoning)} reasoning` : ""];
  return [make("span", "", spent.filter(Boolean).join(", ")), make("span", "", `${seconds.toFixed(2)} s`),
    given(make("span", "source " + source, source), { title: SOURCES[source] ?? source }),
    make("span", outcome === "ok" ? "" : "trouble", outcome + (repair ? ", a repair" : ""))];
}

function drawCall(call) {
  const reply = replyOf(call);
  const who = madeFor(call);
  const name = make("span", "name", soft(call[0]), make("small", "", " " + (who ?? []).join(" → ")));
  const node = make("details", "call", make("summary", "", name, numbers(call), make("code", "", reply[0])));
  node.dataset.key = reply[0];
  node.addEventListener("toggle", () => {
    if (node.open && node.children.length === 1) node.append(make("div", "exchange", drawExchange(reply)));
  });
  return node;
}

// A button that opens all calls, or closes them.
function toggle(calls) {
  const button = given(make("button", "", "open all"), { type: "button" });
  button.addEventListener("click", () => {
    const open = calls.some((call) => !call.open);
    for (const call of calls) call.open = open;
    button.textContent = open ? "close all" : "open all";
  });
  return button;
}

function drawCalls(answer) {
  if (!answer.calls.length) return make("p", "muted", answer.failure ? "No call ended with a reply." : "No model was asked.");
  const calls = answer.calls.map(drawCall);
  if (calls.length === 1) calls[0].open = true;
  const note = "Tokens are those of the prompt and of the reply.";
  return make("div", "calls", make("p", "muted", calls.length > 1 ? toggle(calls) : null, note), calls);
}

// Open the call that the address names.
function openCall(target) {
  const [key, number = "1"] = target.split(".").reverse();
  const pane = document.querySelectorAll(".pane")[number - 1];
  const found = [...pane?.querySelectorAll(".call") ?? []].find((call) => call.dataset.key === key);
  if (!found) return;
  found.open = true;
  found.firstChild.focus({ preventScroll: true });
  found.scrollIntoView({ block: "start" });
}
