// The address: everything that is chosen stands in the part behind `#`, so that a link leads to it and the browser's
// own back and forward work.

const FILTERS = ["order", "outcome", "fault", "group", "method", "run", "text"];
const KEYS = [...FILTERS, "q", "show", "beside", "call"];

function chosen() {
  const said = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, said.get(key) ?? ""]));
}

function address(state) {
  const said = new URLSearchParams(KEYS.filter((key) => state[key]).map((key) => [key, state[key]]));
  return "#" + said;
}

// Go to another choice: a step of its own in the history, or in place of the present one.
function go(changed, inPlace = false) {
  const target = address({ ...chosen(), ...changed });
  if (inPlace) location.replace(target);
  else location.hash = target;
}

const filtersOf = (state) => Object.fromEntries(FILTERS.map((key) => [key, state[key]]));
