// Python in a worker, with SymPy and normgrad's provers, all of it from this site; the page stays alive while it proves.
const here = new URL(".", import.meta.url).href;
// The archives that every page needs, and those that this one asks for.
const names = ["packages.zip", "normgrad.zip", ...new URL(import.meta.url).searchParams.getAll("archive")];

// What is fetched is counted, for the page's progress.
const ask = self.fetch.bind(self);
let loaded = 0;
async function counted(address, ...more) {
  const response = await ask(address, ...more);
  if (!response.ok) throw new Error(`${address}: status ${response.status}`);
  const counter = new TransformStream({transform(part, next) {
    self.postMessage({loaded: loaded += part.byteLength});
    next.enqueue(part);
  }});
  return new Response(response.body.pipeThrough(counter), {headers: response.headers});
}

// The two large parts come compressed, whatever the server does.
const unpacked = async (name) => (await counted(`${here}${name}.gz`)).body.pipeThrough(new DecompressionStream("gzip"));

// Pyodide fetches its WebAssembly by itself; here it gets what was fetched already.
self.fetch = async (address, ...more) => {
  const name = String(address?.url ?? address).split("/").pop();
  if (name !== "pyodide.asm.wasm") return counted(address, ...more);
  return new Response(await unpacked(name), {headers: {"Content-Type": "application/wasm"}});
};

async function start() {
  const [{loadPyodide}, archives, text, lock] = await Promise.all([
    import("./pyodide.mjs"),
    Promise.all(names.map(async (name) => new Uint8Array(await (await counted(`${here}${name}`)).arrayBuffer()))),
    unpacked("pyodide.asm.mjs").then((stream) => new Response(stream).text()),
    counted(`${here}pyodide-lock.json`).then((response) => response.text()),
  ]);
  const module_ = URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
  const {default: createPyodideModule} = await import(module_);
  const python = await loadPyodide({
    indexURL: here, stdLibURL: `${here}python.zip`, lockFileContents: lock, createPyodideModule, packageBaseUrl: here,
  });
  for (const [place, archive] of archives.entries()) python.FS.writeFile(`/${names[place]}`, archive);
  // the package lies in several archives
  python.runPython(`
import sys
archives = ["/" + name for name in "${names}".split(",")]
sys.path[:0] = archives
import normgrad, sympy
normgrad.__path__ = [archive + "/normgrad" for archive in archives]
`);
  return python;
}

const started = start();
started.then(
  () => self.postMessage({ready: true}),
  (error) => self.postMessage({failed: String(error)}),
);

// A question names a function of a module, as "workbench.judge"; what it is given and what it returns are texts.
self.onmessage = async ({data: {id, ask: what, given}}) => {
  try {
    const [module, name] = what.split(".");
    const answer = (await started).pyimport(module)[name](...given);
    self.postMessage({id, answer});
  } catch (error) {
    // after anything but an error of Python's own, Python does not go on
    const words = String(error.message ?? error).trim().split("\n").pop();
    if (error.constructor.name === "PythonError") self.postMessage({id, failed: words});
    else self.postMessage({id, broken: true, failed: `Python stopped, as it does where a text is nested too deeply (${words}).`});
  }
};
