// What the page holds, unpacked. `data` are the questions of this part with all that they refer to by place; `index`
// are the parts, each with its file and a row a question, for the filters.

let data = null;
let index = null;

async function unpack(id) {
  const letters = atob(at(id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

async function load() {
  [data, index] = await Promise.all([unpack("data"), unpack("index")]);
  data.questions.forEach((question, i) => { question.row = index.parts[index.here].rows[i]; });
}

const questionOf = (id) => data.questions.find((question) => question.id === id);
const runOf = (name) => data.runs.findIndex((run) => run.name === name);
const chainOf = (place) => data.columns[place][0];
const cellsOf = (place) => data.columns[place][1].map((cell) => data.cells[cell]);
const finalOf = (place) => data.columns[place][2];
