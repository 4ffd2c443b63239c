// Packs Python for the workbench, by Pyodide itself in Node, since compiled files fit one version of Python alone.
//
//   node pack.mjs PYODIDE FOLDER...   where each FOLDER holds an `in` of sources and gets a `packed.zip`
import {existsSync} from "node:fs";
import {resolve} from "node:path";
import {pathToFileURL} from "node:url";

const [home, ...folders] = process.argv.slice(2).map((one) => resolve(one));
const {loadPyodide} = await import(pathToFileURL(`${home}/pyodide.mjs`).href);
const python = await loadPyodide({indexURL: `${home}/`});

// Of what is compiled, docstrings and the tables of lines and columns go: half of all bytes, and nobody reads them here.
// `_pyodide` reads its own docstrings.
const pack = python.runPython(`
import importlib.util, marshal, types, zipfile
from pathlib import Path

DOCUMENTED = {"_pyodide", "pyodide"}

def bare(code):
    consts = tuple(bare(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    full, rest = divmod(len(code.co_code) // 2, 8)
    nowhere = b"\\xff" * full + (bytes([0xF8 + rest - 1]) if rest else b"")  # eight instructions of no line, and so on
    return code.replace(co_consts=consts, co_linetable=nowhere)

def pack(folder):
    root = Path(folder, "in")
    with zipfile.ZipFile(Path(folder, "packed.zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(root)
            optimize = 0 if name.parts[0] in DOCUMENTED else 2
            code = compile(path.read_bytes(), str(name), "exec", dont_inherit=True, optimize=optimize)
            head = importlib.util.MAGIC_NUMBER + bytes(12)
            info = zipfile.ZipInfo(str(name.with_suffix(".pyc")))
            target.writestr(info, head + marshal.dumps(bare(code)), zipfile.ZIP_DEFLATED, 9)
        for path in sorted(root.rglob("*.json")):
            target.writestr(zipfile.ZipInfo(str(path.relative_to(root))), path.read_bytes(), zipfile.ZIP_DEFLATED, 9)

pack
`);
for (const folder of folders) {
  if (!existsSync(`${folder}/in`)) throw new Error(`${folder}/in: is not there`);
  python.FS.mkdirTree("/work");
  python.mountNodeFS("/work", folder);
  pack("/work");
  python.FS.unmount("/work");
}
