// The page as a whole: it shows what the address says.

let current = null;
let drawn = "";
let listed = "";

const isSmall = () => matchMedia("screen and (max-width: 50rem)").matches;

// The question of the address, or the first that fits and is not right.
function questionFor(state) {
  const wrong = (question) => regarded(state).some((place) => (question.row[3][place] ?? ["right"])[0] !== "right");
  const shown = [...links.keys()];
  return questionOf(state.q) ?? shown.find(wrong) ?? shown[0] ?? null;
}

// A question of another part is shown there.
function elsewhere(state) {
  const part = index.parts.findIndex(({ rows }, i) => i !== index.here && rows.some(([id]) => id === state.q));
  if (part < 0 || questionOf(state.q)) return false;
  location.replace(encodeURIComponent(index.parts[part].file) + address(state));
  return true;
}

function showNothing() {
  at("detail").replaceChildren(make("p", "muted",
    data.questions.length ? "No question fits." : "This run has no questions."));
}

function follow() {
  const state = chosen();
  if (state.q && elsewhere(state)) return;
  if (listed !== address(filtersOf(state))) {
    listed = address(filtersOf(state));
    showFilters(state);
    tellParts(state);
    drawList(state);
  }
  const next = questionFor(state);
  const wanted = JSON.stringify([next?.id, listed, state.show, state.beside]);
  const moved = next !== current;
  current = next;
  markCurrent(next);
  if (wanted !== drawn) {
    drawn = wanted;
    if (next) drawQuestion(next, state);
    else showNothing();
  }
  if (state.call) openCall(state.call);
  else if (moved && state.q) at(isSmall() ? "detail" : "questions").scrollIntoView();
}

function skip(event) {
  event.preventDefault();
  at("detail").focus();
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    at("detail").textContent = "This browser cannot unpack the questions, since it has no DecompressionStream: " +
      "open the page in a newer one, or look at a question with the command rectom show.";
    return;
  }
  await load();
  listenToFilters();
  addEventListener("hashchange", follow);
  addEventListener("keydown", press);
  addEventListener("resize", level);
  at("skip").addEventListener("click", skip);
  follow();
  document.documentElement.dataset.ready = "true";
}

start();
