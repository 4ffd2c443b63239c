// Python in a worker, with SymPy and normgrad.symbolic, all of it from this site; the page stays alive while it proves.
const here = new URL(".", import.meta.url).href;

// The two large parts come compressed, whatever the server does.
async function unpacked(name) {
  const response = await fetch(`${here}${name}.gz`);
  if (!response.ok) throw new Error(`${name}: status ${response.status}`);
  return response.body.pipeThrough(new DecompressionStream("gzip"));
}

// Pyodide fetches its WebAssembly by itself; here it gets what was fetched already.
const ask = self.fetch.bind(self);
self.fetch = async (address, ...more) => {
  const name = String(address?.url ?? address).split("/").pop();
  if (name !== "pyodide.asm.wasm") return ask(address, ...more);
  return new Response(await unpacked(name), {headers: {"Content-Type": "application/wasm"}});
};

async function start() {
  const [{loadPyodide}, packages, text, lock] = await Promise.all([
    import("./pyodide.mjs"),
    ask(`${here}packages.zip`).then((response) => response.arrayBuffer()),
    unpacked("pyodide.asm.mjs").then((stream) => new Response(stream).text()),
    ask(`${here}pyodide-lock.json`).then((response) => response.text()),
  ]);
  const module_ = URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
  const {default: createPyodideModule} = await import(module_);
  const python = await loadPyodide({
    indexURL: here, stdLibURL: `${here}python.zip`, lockFileContents: lock, createPyodideModule, packageBaseUrl: here,
  });
  python.FS.writeFile("/packages.zip", new Uint8Array(packages));
  python.FS.writeFile("/normgrad.zip", new Uint8Array(await (await ask(`${here}normgrad.zip`)).arrayBuffer()));
  python.runPython("import sys; sys.path[:0] = ['/normgrad.zip', '/packages.zip']");
  return python.pyimport("workbench");
}

const started = start();
started.then(
  () => self.postMessage({ready: true}),
  (error) => self.postMessage({failed: String(error)}),
);

self.onmessage = async ({data: {id, ask: what, text}}) => {
  try {
    const workbench = await started;
    const answer = what === "judge" ? JSON.parse(workbench.judge(text)) : workbench.statement(text);
    self.postMessage({id, answer});
  } catch (error) {
    self.postMessage({id, failed: String(error.message ?? error).trim().split("\n").pop()});
  }
};
