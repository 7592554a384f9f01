// Which questions fit. A row is `[id, order, group, answers]`, an answer `[kind, step that failed, step at fault]`, or
// null where a run has none.

// The places of the runs that the filters speak of.
const regarded = (state) => [...data.runs.keys()].filter((place) =>
  (!state.run || data.runs[place].name === state.run) && (!state.method || data.runs[place].method === state.method));

const isOutcome = ([kind, step], outcome) =>
  !outcome || outcome === "disagree" || outcome === kind || (step && outcome === "failed:" + step);

const answerFits = (answer, state) =>
  Boolean(answer) && isOutcome(answer, state.outcome) && (!state.fault || answer[2] === state.fault);

const disagree = (answers) => new Set(answers.map(([kind]) => kind === "right")).size > 1;

function rowFits([, order, group, answers], state, runs) {
  const given = runs.map((place) => answers[place]).filter(Boolean);
  return (!state.order || state.order === String(order ?? "-")) && (!state.group || state.group === group) &&
    (state.outcome !== "disagree" || disagree(given)) && given.some((answer) => answerFits(answer, state));
}

const wordsOf = (state) => state.text.toLowerCase().split(/\s+/).filter(Boolean);

function textFits(question, words) {
  if (!words.length) return true;
  const answers = question.answers.filter(Boolean).map((answer) => answer.predicted);
  const text = [question.id, question.text, question.story_id, question.gold, ...answers].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function fitting(state) {
  const [runs, words] = [regarded(state), wordsOf(state)];
  return data.questions.filter((question) => rowFits(question.row, state, runs) && textFits(question, words));
}

// The links to the other parts carry the filters, and say how many questions fit there.
function tellParts(state) {
  const runs = regarded(state);
  const target = address(filtersOf(state));
  for (const link of document.querySelectorAll("a[data-part]")) {
    const { file, rows } = index.parts[link.dataset.part];
    link.href = encodeURIComponent(file) + (target === "#" ? "" : target);
    const fits = rows.filter((row) => rowFits(row, state, runs)).length;
    const told = link.parentNode.querySelector(".fits");
    if (told) told.textContent = fits === rows.length || state.text ? "" : `, ${fits} of them fit`;
  }
}

function showFilters(state) {
  for (const key of FILTERS) {
    const control = at(key);
    // Who types is ahead of the address.
    if (control && (key !== "text" || control !== document.activeElement)) control.value = state[key];
  }
}

function listenToFilters() {
  for (const key of FILTERS) {
    at(key)?.addEventListener(key === "text" ? "input" : "change", (event) => {
      const changed = { [key]: event.target.value };
      const shown = questionOf(chosen().q);
      const stays = shown && fitting({ ...chosen(), ...changed }).includes(shown);
      go(stays ? changed : { ...changed, q: "", call: "" }, key === "text");
    });
  }
}
