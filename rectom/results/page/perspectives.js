// The perspectives of an answer: a row a step of the story, a column a perspective. What differs from the rule reader
// is marked with ✗, and the rules' own cell stands below.

const MARKS = {
  " ": ["world", ""], "o": ["observed", "observed"], "h": ["heard", "heard"],
  "!": ["revised", "revised"], ".": ["inherited", "inherited"],
};
const WORLD = "World";
const holder = (chain) => chain.at(-1) ?? WORLD;
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

const how = ([mark, where]) => (mark === "o" && where ? ["from ", ...soft(where)] : [MARKS[mark][1]]);

// What the rules have instead.
const rules = (...told) =>
  given(make("span", "rules", make("b", "", "✗ rules: "), ...told), { title: "differs from the rule reader, which has this" });

// What the rules have in place of a cell, as far as it differs.
function contrary(cell, rule, shades) {
  const told = [];
  if (!same(cell[2], rule[2])) told.push(...held(rule[2], shades), " ");
  if (!same(cell.slice(0, 2), rule.slice(0, 2))) told.push(MARKS[rule[0]][1], ...(rule[1] ? [" from ", ...soft(rule[1])] : []));
  if (!same(cell[3], rule[3])) told.push(changes(rule[3]) ?? make("span", "nothing", "no change"));
  return rules(...told);
}

function drawCell(cell, beside, rule, who, shades) {
  if (cell === undefined) return make("td");
  const [mark, , holds, changed] = cell;
  const [style, said] = MARKS[mark];
  const node = make("td", "cell " + style, make("span", "who", who), make("div", "state", held(holds, shades)));
  if (beside !== undefined && !same(beside[2], holds)) node.classList.add("differs");
  if (said) node.append(make("div", "mark " + style, how(cell)));
  node.append(changes(changed) ?? "");
  if (rule !== undefined && !same(rule, cell)) {
    node.append(contrary(cell, rule, shades));
    node.classList.add("astray");
  }
  return node;
}

// What the rules make of the columns, each found by its chain.
function expected(answer) {
  if (!answer.rules || answer.rules.histories !== answer.histories) return new Map();
  return new Map(answer.rules.columns.map((place) => [JSON.stringify(chainOf(place)), place]));
}

function columnsOf(answer) {
  const by = expected(answer);
  return answer.columns.map((place) => {
    const rule = by.get(JSON.stringify(chainOf(place)));
    return { chain: chainOf(place), cells: cellsOf(place), final: finalOf(place), rule: rule === undefined ? [] : cellsOf(rule) };
  });
}

function drawLine(line, i, answer) {
  const event = data.events[answer.events][i] ?? [];
  const rule = answer.rules && data.events[answer.rules.events][i];
  const node = make("th", "step", make("span", "number", String(i + 1)), make("span", "line", soft(line)), changes(event));
  if (rule && !same(rule, event) && data.events[answer.events].length) {
    node.append(rules(changes(rule) ?? make("span", "nothing", "no change")));
    node.classList.add("astray");
  }
  return given(node, { scope: "row" });
}

const HERE = "▶ went wrong here";

// The place at fault: the cell of the character at that line, or the line.
function markFault(row, answer, columns) {
  const { who } = answer.fault;
  const place = columns.findIndex(({ chain }) => who && holder(chain) === who);
  const node = row.children[place + 1] ?? row.firstChild;
  node.classList.add("culprit");
  node.append(make("div", "here", HERE));
}

function drawRow(line, i, answer, columns, shades) {
  const row = make("tr", "", drawLine(line, i, answer), columns.map(({ chain, cells, rule }, k) =>
    drawCell(cells[i], k ? columns[k - 1].cells[i] : undefined, rule[i], holder(chain), shades)));
  if (answer.fault?.line === i + 1) markFault(row, answer, columns);
  return row;
}

function drawFinal(answer, columns, shades) {
  const ends = columns.map(({ cells }) => (cells.length ? cells.at(-1)[2] : []));
  const whole = !answer.missing.length && answer.predicted !== null;
  return columns.map(({ chain, final, rule }, k) => {
    const differs = k && !same(ends[k], ends[k - 1]) ? " differs" : "";
    const node = make("td", "cell" + differs, make("span", "who", holder(chain)), make("div", "state", held(ends[k], shades)),
      whole && k === columns.length - 1 ? make("div", "mark", make("b", "", "answers: "), soft(answer.predicted)) : null,
      make("ul", "changes", final.filter((fact) => !ends[k].includes(fact)).map((fact) => make("li", "", soft(fact)))));
    if (rule.length && !same(rule.at(-1)[2], ends[k])) {
      node.append(rules(...held(rule.at(-1)[2], shades)));
      node.classList.add("astray");
    }
    return node;
  });
}

// Below each perspective the calls that made it.
function drawMakers(answer, columns, number) {
  const cells = columns.map(({ chain }) => make("td", "cell makers", make("span", "who", holder(chain)),
    make("div", "", linksToCalls(answer, number, (call) => isMadeFor(call, chain)))));
  return make("tr", "", make("th", "step", "Model calls"), cells);
}

function drawHead(columns) {
  const heads = columns.map(({ chain }) => given(
    make("th", "", ...chain.slice(0, -1).map((name) => make("small", "", name + " thinks")), holder(chain)), { scope: "col" }));
  return make("thead", "", make("tr", "", given(make("th", "step", "Step"), { scope: "col" }), heads));
}

function shadesOf(question, answers) {
  const places = answers.flatMap(({ columns, rules: told }) => [...columns, ...(told?.columns ?? [])]);
  return hues(new Set([...places.flatMap((column) => cellsOf(column).flatMap((cell) => cell[2])), ...question.choices]));
}

// The table of the steps; for answers without perspectives the lines of the story alone.
function drawSteps(question, answer, number, shades) {
  const columns = columnsOf(answer);
  const lines = data.stories[question.story];
  const table = make("table", columns.length ? "steps" : "steps bare", drawHead(columns),
    make("tbody", "", lines.map((line, i) => drawRow(line, i, answer, columns, shades))));
  if (columns.length) {
    const foot = make("th", "step", answer.histories ? "Final history" : "Final state");
    table.append(make("tfoot", "", make("tr", "", foot, drawFinal(answer, columns, shades)),
      answer.calls.length ? drawMakers(answer, columns, number) : null));
  }
  return make("div", "wide", table);
}
