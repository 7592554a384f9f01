// A question, and the answers of one or two runs to it.

function verdict({ kind, predicted, failure }, gold) {
  if (kind === "failed") return failure ? `Failed at ${failure[0]}: ${failure[1]}` : "Failed";
  const label = gold === null ? "there is no label" : `the label is ${quoted(gold)}`;
  const said = predicted === null ? "no answer" : quoted(predicted);
  return kind === "right" ? `Right: ${said}` : `Wrong: ${said}; ${label}`;
}

// An option in a sentence: in quotes if it is one itself.
const quoted = (option) => (option.includes(" ") ? `“${option}”` : option);

// Where a wrong answer went wrong, in words, with a way to the line.
function drawFault(answer) {
  const { fault } = answer;
  if (!fault) return null;
  const told = [`Went wrong at ${fault.step}`];
  if (fault.line !== null) told.push(", ", toLine(fault.line));
  if (fault.who) told.push(`, ${fault.who}`);
  const verified = fault.by === "verify";
  return make("div", "blame", make("p", "", make("b", "", "▶ ", told)), make("dl", "",
    make("dt", "", "found"), make("dd", "", soft(fault.found)),
    make("dt", "", verified ? "the check asks for" : "the rules say"), make("dd", "", soft(fault.expected))));
}

function toLine(line) {
  const button = given(make("button", "link-like", `line ${line}`), { type: "button" });
  button.addEventListener("click", () => {
    const row = button.closest(".pane").querySelectorAll(".steps tbody tr")[line - 1];
    row?.scrollIntoView({ block: "center" });
  });
  return button;
}

function drawOptions(question, answers, shades) {
  const items = question.choices.map((choice) => {
    const notes = choice === question.gold ? [make("b", "label", "label")] : [];
    answers.forEach((answer, i) => {
      if (choice === answer.predicted) notes.push(make("b", "answer", answers.length > 1 ? `answer ${i + 1}` : "answer"));
    });
    return make("li", notes.length ? "chosen" : "", chip(choice, shades), notes);
  });
  return make("ul", question.choices.some((choice) => choice.includes(" ")) ? "options sentences" : "options", items);
}

const linked = (names, built) => make("span", "chain", names.flatMap((name, i) => {
  const style = "link" + (i < built ? "" : " unbuilt") + (i === names.length - 1 ? " last" : "");
  return i ? [make("span", "arrow", " → "), make("span", style, name)] : [make("span", style, name)];
}));

function drawChain(answer, number) {
  const told = answer.rules?.chain;
  const links = linksToCalls(answer, number, ([step]) => /^chain/.test(step));
  const parts = answer.chain
    ? [linked([WORLD, ...answer.chain], answer.chain.length + 1 - answer.missing.length)] : ["The chain was not read."];
  if (told && !same(told, answer.chain)) parts.push(rules([WORLD, ...told].join(" → ")));
  return make("div", "", ...parts, " ", links);
}

function drawReduced(answer, number) {
  const told = answer.rules?.reduced;
  const links = linksToCalls(answer, number, ([step]) => step === "reduce");
  const parts = answer.reduced === null ? ["The question was not reduced."] : [
    `Reduced question, answered from the last final ${answer.histories ? "history" : "state"}: `, make("q", "", answer.reduced)];
  if (told && told !== answer.reduced) parts.push(rules(make("q", "", told)));
  return make("p", "", ...parts, " ", links);
}

// What the methods without a chain do not have is not spoken of.
function drawReading(answer, number, method) {
  if (!method.startsWith("rectom") && !answer.chain) return [];
  return [make("h3", "", "Chain"), drawChain(answer, number), drawReduced(answer, number)];
}

function drawTitle(answer) {
  const { missing } = answer;
  return [make("h3", "", answer.columns.length ? "Perspectives" : "Story"),
    missing.length ? make("p", "verdict failed", `Not built: the perspectives of ${missing.join(", ")}.`) : null,
    answer.columns.length ? at("legend").content.cloneNode(true) : null];
}

function drawPane(question, place, number, shades) {
  const answer = question.answers[place];
  const told = answer.rules?.predicted;
  const { name, method } = data.runs[place];
  const last = linksToCalls(answer, number, ([step]) => /^(answer|choose)/.test(step));
  const head = make("div", "",
    data.runs.length > 1 ? make("h3", "whose", make("span", "number", String(number)), soft(name)) : null,
    make("p", "verdict " + answer.kind, badge(answer.kind), verdict(answer, question.gold), " ", last),
    told && told !== answer.predicted ? make("p", "", rules(soft(told))) : null,
    drawFault(answer), drawReading(answer, number, method));
  const calls = [make("h3", "", "Model calls"), drawCalls(answer)];
  const steps = drawSteps(question, answer, number, shades);
  // Without perspectives the calls are what there is to see; otherwise the head ends where the steps begin.
  const pane = answer.columns.length
    ? make("section", "pane", make("div", "head", head, drawTitle(answer)), steps, calls)
    : make("section", "pane", head, calls, drawTitle(answer), steps);
  return given(pane, { "aria-label": `The answer of ${name}` });
}

// The runs that are shown: those of the address, or else the first that fit, two where there are two.
function shownRuns(question, state) {
  const able = [...data.runs.keys()].filter((place) => question.answers[place]);
  const among = regarded(state).filter((place) => able.includes(place));
  const fit = among.filter((place) => answerFits(question.row[3][place], state));
  const named = runOf(state.show);
  const first = able.includes(named) ? named : fit[0] ?? among[0] ?? able[0];
  if (state.beside === "-") return [first];
  const other = runOf(state.beside);
  const second = able.includes(other) ? other : [...fit, ...among].find((place) => place !== first);
  return second === undefined || second === first ? [first] : [first, second];
}

function runChooser(key, label, places, value) {
  const options = places.map(([name, text]) => given(make("option", "", text), { value: name }));
  const select = make("select", "", options);
  select.value = value;
  select.addEventListener("change", () => go({ [key]: select.value, call: "" }));
  return make("label", "", label + " ", select);
}

function drawChoosers(question, shown) {
  if (data.runs.length < 2) return null;
  const able = data.runs.flatMap(({ name }, i) =>
    question.answers[i] ? [[name, `${KINDS[question.answers[i].kind]} ${name}`]] : []);
  const names = shown.map((place) => data.runs[place].name);
  return make("div", "choosers", runChooser("show", "1", able, names[0]),
    runChooser("beside", "2", [["-", "no other run"], ...able.filter(([name]) => name !== names[0])], names[1] ?? "-"));
}

function drawMoves(question) {
  const move = (by, text, label) => {
    const button = given(make("button", "", text), { type: "button", "aria-label": label });
    const next = step(question, by);
    button.disabled = !next || next === question;
    button.addEventListener("click", () => go({ q: next.id, call: "" }));
    return button;
  };
  return make("div", "moves", move(-1, "← before", "the question before"), move(1, "next →", "the next question"));
}

function drawQuestion(question, state) {
  const shown = shownRuns(question, state);
  const answers = shown.map((place) => question.answers[place]);
  const shades = shadesOf(question, answers);
  const [, order, group] = question.row;
  const about = [`Question ${question.id}`, order === null ? "" : `order ${order}`, group, `story ${question.story_id}`];
  at("detail").replaceChildren(
    make("div", "above", make("p", "muted", about.filter(Boolean).join(", ")), drawMoves(question)),
    make("h2", "", question.text),
    drawOptions(question, answers, shades),
    drawChoosers(question, shown) ?? "",
    make("div", shown.length > 1 ? "panes two" : "panes", shown.map((place, i) => drawPane(question, place, i + 1, shades))));
  level();
}

// Where two answers stand beside each other, the same steps of the story stand at the same height.
function level() {
  const panes = [...document.querySelectorAll(".panes.two > .pane")];
  if (panes.length < 2 || panes.some((pane) => pane.querySelector(".bare"))) return;
  const rows = panes.map((pane) => [...pane.querySelectorAll(".head, .steps tr")]);
  for (const row of rows.flat()) row.style.minHeight = "";
  if (panes[0].offsetTop !== panes[1].offsetTop) return;
  const height = (row) => row?.getBoundingClientRect().height ?? 0;
  // Whole pixels, or what is left of them would add up.
  const heights = rows[0].map((row, i) => Math.ceil(Math.max(height(row), height(rows[1][i]))));
  for (const side of rows) side.forEach((row, i) => { row.style.minHeight = `${heights[i] ?? 0}px`; });
}
